import type { Channel, SendResult } from './channels/channel.ts';
import type { DamagedDelivery, DeliveryResult, DueDelivery } from './delivery.ts';
import { jittered } from './retry-schedule.ts';

/**
 * One committed attempt, for logs and metrics. The fields in the singular describe the first
 * delivery of the message.
 */
export type AttemptReport = ReturnType<typeof resultsOf>['report'];

/**
 * Returns the result of an attempt for each of its deliveries, and its report. `random` in [0, 1)
 * jitters the retry.
 */
export function resultsOf(attempt: {
  destination: string;
  channel: Pick<Channel, 'retryDelayMs'>;
  /** At least one. */
  deliveries: readonly (DueDelivery | DamagedDelivery)[];
  result: SendResult;
  /** When the attempt started and ended. */
  at: number;
  now: number;
  random: number;
}) {
  const { destination, channel, deliveries, result, at, now, random } = attempt;
  const durationMs = now - at;
  const error = result.kind === 'failed' ? result.error : null;
  const stored = {
    at,
    durationMs,
    httpStatus: result.httpStatus,
    error,
    response: result.response,
  };
  const results = deliveries.map(
    ({ id, attempts, revision }): DeliveryResult => ({
      deliveryId: id,
      destination,
      attempts,
      revision,
      attempt: stored,
      // All share one random value, so that deliveries sent as one message are retried as one.
      next: nextOf(result, { channel, attempts: attempts + 1, now, random }),
    }),
  );
  const [first, firstResult] = [deliveries[0], results[0]];
  if (!first || !firstResult) throw new Error('an attempt without deliveries');
  return {
    results,
    report: {
      destination,
      deliveryIds: deliveries.map(({ id }) => id),
      eventIds: deliveries.map(({ event }) => event.id),
      eventType: first.event.type,
      submissionId: 'submission' in first.event ? first.event.submission.submissionId : undefined,
      /** 1-based. */
      attempt: first.attempts + 1,
      durationMs,
      result,
      next: firstResult.next,
    },
  };
}

/** The next state of a delivery after `attempts` attempts. */
function nextOf(
  result: SendResult,
  context: {
    channel: Pick<Channel, 'retryDelayMs'>;
    attempts: number;
    now: number;
    random: number;
  },
): DeliveryResult['next'] {
  const { channel, attempts, now, random } = context;
  if (result.kind === 'delivered') return { kind: 'delivered' };
  if (result.undeliverable) return { kind: 'dead', reason: 'undeliverable' };
  if (result.gone) return { kind: 'gone' };
  const delayMs = channel.retryDelayMs(attempts);
  if (delayMs === null) return { kind: 'dead', reason: 'attempts_used_up' };
  const retryAfterMs = result.slowDown?.retryAfterMs ?? 0;
  return { kind: 'retry', at: now + Math.max(jittered(delayMs, random), retryAfterMs) };
}
