import type { Alert, AlertFacts, Condition } from '../monitor/alert.ts';
import type { Attempt, DeadReason } from '../monitor/delivery.ts';
import type { EventRecord } from '../monitor/event-body.ts';
import type { AlertEventType } from '../monitor/events.ts';

/** A delivery that is due, with what is sent. */
export type Waiting = { id: number; attempts: number; event: EventRecord; callbackUrl: string | null };

/** What came of one attempt at one delivery. */
export type Settlement = {
  deliveryId: number;
  destination: string;
  attempt: Attempt;
  /** retry: at that time. gone: the receiver wants nothing any more, which disables its webhook. */
  next: { kind: 'delivered' } | { kind: 'retry'; at: number } | { kind: 'dead'; reason: DeadReason } | { kind: 'gone' };
};

/** What must still be delivered, on the disk. Every method is one transaction; throws LedgerUnavailableError. */
export type DeliveryStore = {
  /** Everywhere something waits, with when the first of it is due. */
  destinations(): { destination: string; dueAt: number }[];
  /** The first that are due there, without those in `except`. */
  due(destination: string, query: { now: number; limit: number; except: ReadonlySet<number> }): Waiting[];
  /** When the first one that is not in `except` is due there; null: nothing else waits. */
  nextDueAt(destination: string, except: ReadonlySet<number>): number | null;
  /** `disableAfterMs`: of nothing but failures, a webhook is disabled. */
  settle(settlements: readonly Settlement[], disableAfterMs: number): void;
  /** Everything that waits there becomes a dead letter. */
  giveUp(destination: string, reason: DeadReason, now: number): void;
  /** Calls `listener` after every commit that made deliveries wait, until the function it gives back is called. */
  onWaiting(listener: (destinations: ReadonlySet<string>) => void): () => void;
  /** Deletes up to `limit` that ended before that time. Gives back how many there were. */
  prune(endedBefore: number, limit: number): number;
};

/** Which conditions were told, on the disk. */
export type AlertStore = {
  facts(failuresSince: number): AlertFacts;
  /** Tells what is new, what is over, and what still holds although it was told so long ago. Gives back what was told. */
  reconcile(
    conditions: readonly Condition[],
    times: { now: number; remindAfterMs: number },
  ): { type: AlertEventType; alert: Alert }[];
};
