import type { DeliveryResult, DueDelivery, UnreadableDelivery } from '../../domain/notifications/delivery.ts';
import type { Channel, SendResult } from '../channels/channel.ts';
import { jittered } from './retry-schedule.ts';

/** What came of one attempt, committed. */
export type AttemptReport = {
  destination: string;
  deliveryIds: readonly number[];
  eventIds: readonly string[];
  eventType: string;
  /** What the first one is about, if that is a submission. */
  submissionId: string | undefined;
  /** The number of this attempt of the first one, from 1. */
  attempt: number;
  durationMs: number;
  result: SendResult;
  next: DeliveryResult['next'];
};

/** What an attempt means for each delivery that was told in it, and for whoever counts attempts. `random` in [0, 1). */
export function resultsOf(attempt: {
  destination: string;
  channel: Pick<Channel, 'retryDelayMs'>;
  /** One at least. */
  waiting: readonly (DueDelivery | UnreadableDelivery)[];
  result: SendResult;
  at: number;
  now: number;
  random: number;
}): { settlements: DeliveryResult[]; attempted: AttemptReport } {
  const { destination, channel, waiting, result, at, now, random } = attempt;
  const durationMs = now - at;
  const error = result.kind === 'failed' ? result.error : null;
  const kept = { at, durationMs, httpStatus: result.httpStatus, error, response: result.response };
  const settlements = waiting.map(({ id, attempts, revision }) => ({
    deliveryId: id,
    destination,
    attempts,
    revision,
    attempt: kept,
    // The same chance for all: what was sent as one message comes back as one.
    next: nextOf(result, { channel, tried: attempts + 1, now, random }),
  }));
  const [first, settlement] = [waiting[0], settlements[0]];
  if (!first || !settlement) throw new Error('an attempt was about nothing');
  return {
    settlements,
    attempted: {
      destination,
      deliveryIds: waiting.map(({ id }) => id),
      eventIds: waiting.map(({ event }) => event.id),
      eventType: first.event.type,
      submissionId: 'submission' in first.event ? first.event.submission.submissionId : undefined,
      attempt: first.attempts + 1,
      durationMs,
      result,
      next: settlement.next,
    },
  };
}

/** What becomes of a delivery after its `tried`-th attempt. */
function nextOf(
  result: SendResult,
  attempt: { channel: Pick<Channel, 'retryDelayMs'>; tried: number; now: number; random: number },
): DeliveryResult['next'] {
  const { channel, tried, now, random } = attempt;
  if (result.kind === 'delivered') return { kind: 'delivered' };
  if (result.undeliverable) return { kind: 'dead', reason: 'undeliverable' };
  if (result.gone) return { kind: 'gone' };
  const delayMs = channel.retryDelayMs(tried);
  if (delayMs === null) return { kind: 'dead', reason: 'attempts_used_up' };
  const wishedMs = result.slowDown?.retryAfterMs ?? 0;
  return { kind: 'retry', at: now + Math.max(jittered(delayMs, random), wishedMs) };
}
