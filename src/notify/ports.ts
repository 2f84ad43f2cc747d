import type { Alert, AlertCondition, AlertFacts, AlertQuery } from '../domain/notifications/alert.ts';
import type { DeliveryResult, DueDelivery, UnreadableDelivery } from '../domain/notifications/delivery.ts';
import type { AlertEventType } from '../domain/notifications/events.ts';

/** What must still be delivered, on the disk. Every method is one transaction; throws LedgerUnavailableError. */
export type DeliveryStore = {
  /** Everywhere something waits, with when the first of it is due. */
  destinations(): { destination: string; dueAt: number }[];
  /** The first that are due there, without those in `except`. */
  due(
    destination: string,
    query: { now: number; limit: number; except: ReadonlySet<number> },
  ): (DueDelivery | UnreadableDelivery)[];
  /** When the first one that is not in `except` is due there; null: nothing else waits. */
  nextDueAt(destination: string, except: ReadonlySet<number>): number | null;
  /** `disableAfterMs`: of nothing but failures, a webhook is disabled. */
  settle(settlements: readonly DeliveryResult[], disableAfterMs: number): void;
  /** What has waited there since before that time becomes a dead letter: nobody is left who could send it. */
  giveUp(destination: string, createdBefore: number, now: number): void;
  /** Brings times back that a clock which was ahead has written: nothing waits for longer than `maxWaitMs`. */
  correctTimes(now: number, maxWaitMs: { first: number; retry: number }): void;
  /** Calls `listener` after every commit that made deliveries wait, until the function it gives back is called. */
  onWaiting(listener: (destinations: ReadonlySet<string>) => void): () => void;
};

/** Which conditions were told, on the disk. */
export type AlertStore = {
  /** Of these upstreams; failures, dead letters and what waits are counted by their times. */
  facts(query: AlertQuery): AlertFacts;
  /** Tells what is new, what is over, and what still holds although it was told so long ago. Gives back what was told. */
  reconcile(
    conditions: readonly AlertCondition[],
    times: { now: number; remindAfterMs: number },
  ): { type: AlertEventType; alert: Alert }[];
};
