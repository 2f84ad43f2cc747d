import { escapeText } from '../../lib/text.ts';
import type { AttemptReport } from '../../notifications/attempt.ts';
import type { WatcherListener } from '../../polling/listeners.ts';
import { dataOf, upstreamTime } from '../../submissions/classify.ts';
import type { RecordedObservation } from '../../submissions/ports.ts';
import { type Log, logAt } from './event-catalog.ts';

/**
 * Returns a listener that writes one line per observation, change of a submission and change of an
 * upstream.
 */
export function logMonitor(log: Log): WatcherListener {
  return {
    recorded: (recorded) => {
      logObservation(log, recorded);
      if (recorded.result.becameStuck) log.warn(fieldsOf(recorded), 'submission.stuck');
      const event = recorded.result.change?.event;
      // Requests of clients are logged with the request id.
      if (event && event !== 'submission.cancelled' && event !== 'submission.retracked')
        logAt(log, fieldsOf(recorded), event);
    },
    upstream: ({ upstream, event, record }) =>
      logAt(log, { upstream, outage_ms: record.outageMs }, event),
    writeFailed: (error) => log.error({ err: error }, 'ledger.write_failed'),
    listenerFailed: (error) => log.error({ err: error }, 'listener.failed'),
  };
}

function logObservation(log: Log, { observation, submission }: RecordedObservation): void {
  if (!log.isLevelEnabled('debug')) return;
  const { kind, durationMs } = observation;
  const error =
    'error' in observation && observation.error ? escapeText(observation.error) : undefined;
  log.debug(
    { submission_id: submission.submissionId, kind, duration_ms: durationMs, error },
    'poll.observed',
  );
}

function fieldsOf({ submission, previousStatus }: RecordedObservation) {
  const data = dataOf(submission.envelope);
  const createdAt = upstreamTime(typeof data?.created_at === 'string' ? data.created_at : null);
  return {
    submission_id: submission.submissionId,
    upstream: submission.upstream,
    status: submission.status,
    previous_status: previousStatus,
    upstream_state: submission.upstreamState && escapeText(submission.upstreamState),
    error: submission.error === null ? undefined : escapeText(submission.error),
    block_number: typeof data?.block_number === 'number' ? data.block_number : undefined,
    block_hash: typeof data?.block_hash === 'string' ? escapeText(data.block_hash) : undefined,
    tracked_ms:
      (submission.finalizedAt ?? submission.polledAt ?? submission.trackedAt) -
      submission.trackedAt,
    time_to_finality_ms:
      submission.finalizedAt === null
        ? undefined
        : submission.finalizedAt -
          Math.min(createdAt ?? submission.trackedAt, submission.finalizedAt),
    polls: submission.polls,
  };
}

/** Returns a listener that writes one line per delivery attempt. */
export function logAttempt(log: Log): (attempted: AttemptReport) => void {
  return ({
    destination,
    deliveryIds,
    eventIds,
    eventType,
    submissionId,
    attempt,
    durationMs,
    result,
    next,
  }) => {
    const fields = {
      destination,
      delivery_id: deliveryIds[0],
      event_id: eventIds[0],
      submission_id: submissionId,
      type: eventType,
      events: eventIds.length,
      attempt,
      duration_ms: durationMs,
      http_status: result.httpStatus ?? undefined,
    };
    if (result.kind === 'delivered') log.info(fields, 'delivery.delivered');
    else if (next.kind === 'retry')
      log.warn(
        { ...fields, error: escapeText(result.error), next_at: new Date(next.at).toISOString() },
        'delivery.failed',
      );
    else
      log.error({ ...fields, error: escapeText(result.error), reason: next.kind }, 'delivery.dead');
  };
}
