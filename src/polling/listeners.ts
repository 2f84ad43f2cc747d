import { LedgerError } from '../ledger/errors.ts';
import { iso } from '../lib/clock.ts';
import { escapeText } from '../lib/text.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import { dataOf, integerFrom, type Observation, upstreamTime } from '../submissions/classify.ts';
import type { SubmissionEventType } from '../submissions/event-types.ts';
import type { Finalization } from '../submissions/ledger-stats.ts';
import type { EndedSubmission, RecordedChange } from '../submissions/store-results.ts';
import { Status } from '../submissions/submission.ts';
import type { UpstreamChange } from '../submissions/upstream.ts';

/** Everything but `polled` is reported after its commit. */
export type WatcherListener = {
  polled?: (upstream: string, observation: Observation) => void;
  recorded?: (recorded: RecordedChange) => void;
  expired?: (ended: EndedSubmission) => void;
  finalized?: (finalization: Finalization) => void;
  /** The circuit breaker opened, closed, or is open for another reason than before. */
  upstream?: (change: UpstreamChange) => void;
  /** The upstream asks to be left alone for long: the first pause of several in a row. */
  paused?: (pause: { upstream: string; until: number; reason: string | null }) => void;
  writeFailed?: (error: unknown) => void;
  ledgerRecovered?: () => void;
  /** A listener threw, which is a defect of that listener. */
  listenerFailed?: (error: unknown) => void;
};

/**
 * Returns a listener that calls all of these and never throws: after the commit, an error must not
 * look like a failed commit.
 */
export function combineListeners(listeners: readonly WatcherListener[]): Required<WatcherListener> {
  const attempt = (call: () => void, onError: (error: unknown) => void): void => {
    try {
      call();
    } catch (error) {
      onError(error);
    }
  };
  const ignore = () => undefined;
  const listenerFailed = (error: unknown) => {
    for (const listener of listeners) attempt(() => listener.listenerFailed?.(error), ignore);
  };
  const each = (call: (listener: WatcherListener) => void): void => {
    for (const listener of listeners) attempt(() => call(listener), listenerFailed);
  };
  return {
    polled: (upstream, observation) => each((listener) => listener.polled?.(upstream, observation)),
    recorded: (recorded) => each((listener) => listener.recorded?.(recorded)),
    expired: (ended) => each((listener) => listener.expired?.(ended)),
    finalized: (finality) => each((listener) => listener.finalized?.(finality)),
    upstream: (change) => each((listener) => listener.upstream?.(change)),
    paused: (pause) => each((listener) => listener.paused?.(pause)),
    writeFailed: (error) => each((listener) => listener.writeFailed?.(error)),
    ledgerRecovered: () => each((listener) => listener.ledgerRecovered?.()),
    listenerFailed,
  };
}

const HARMLESS: ReadonlySet<SubmissionEventType> = new Set([
  'submission.finalized',
  'submission.corrected',
  'submission.failing',
  'submission.recovered',
]);

/** Logs observations, changes of submissions and changes of upstreams. */
export function logMonitor(log: Log): WatcherListener {
  /** Why the ledger cannot be used, as logged: its retries are not logged again. */
  let ledgerProblem: string | undefined;
  return {
    recorded: (recorded) => {
      logObservation(log, recorded);
      const fields = () => fieldsOf(recorded);
      if (recorded.result.becameStuck) log.warn(fields(), 'submission.stuck');
      if (recorded.result.becameContradicted) {
        const reason = escapeText(recorded.submission.chainReason ?? '');
        log.warn({ ...fields(), chain_reason: reason }, 'submission.contradicted');
      }
      const event = recorded.result.change?.event;
      // Requests of clients are logged with the request id.
      if (event && event !== 'submission.cancelled' && event !== 'submission.retracked')
        log[HARMLESS.has(event) ? 'info' : 'warn'](fields(), event);
    },
    expired: (ended) =>
      log.warn(
        fieldsOf(ended),
        ended.submission.status === Status.failed ? 'submission.failed' : 'submission.expired',
      ),
    upstream: ({ upstream, event, reason, lastedMs }) => {
      const outage = event === 'upstream.up' ? { outage_ms: lastedMs } : {};
      const level = event === 'upstream.up' ? 'info' : 'error';
      log[level]({ upstream, reason: escapeText(reason), ...outage }, event);
    },
    paused: ({ upstream, until, reason }) =>
      log.warn(
        { upstream, until: iso(until), reason: escapeText(reason ?? 'Retry-After') },
        'upstream.paused',
      ),
    writeFailed: (error) => {
      const problem = error instanceof LedgerError ? error.message : undefined;
      if (problem !== undefined && problem === ledgerProblem) return;
      ledgerProblem = problem ?? ledgerProblem;
      log.error({ err: error }, 'ledger.write_failed');
    },
    ledgerRecovered: () => {
      ledgerProblem = undefined;
    },
    listenerFailed: (error) => log.error({ err: error }, 'listener.failed'),
  };
}

function logObservation(log: Log, { observation, submission }: RecordedChange): void {
  if (!observation || !log.isLevelEnabled('debug')) return;
  const { kind, durationMs, worker } = observation;
  const error =
    'error' in observation && observation.error ? escapeText(observation.error) : undefined;
  log.debug(
    { submission_id: submission.submissionId, kind, duration_ms: durationMs, worker, error },
    'poll.observed',
  );
}

function fieldsOf({ submission, previousStatus, at }: EndedSubmission) {
  const data = dataOf(submission.envelope);
  const createdAt = upstreamTime(typeof data?.created_at === 'string' ? data.created_at : null);
  return {
    submission_id: submission.submissionId,
    upstream: submission.upstream,
    status: submission.status,
    previous_status: previousStatus,
    upstream_state: submission.upstreamState && escapeText(submission.upstreamState),
    error: submission.error === null ? undefined : escapeText(submission.error),
    block_number: integerFrom(data?.block_number) ?? undefined,
    block_hash: typeof data?.block_hash === 'string' ? escapeText(data.block_hash) : undefined,
    tracked_ms: (submission.finalizedAt ?? at) - submission.trackedAt,
    time_to_finality_ms:
      submission.finalizedAt === null
        ? undefined
        : submission.finalizedAt -
          Math.min(createdAt ?? submission.trackedAt, submission.finalizedAt),
    polls: submission.polls,
  };
}
