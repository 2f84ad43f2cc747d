import { classify, type Observation } from '../../domain/classify.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Polled } from './poll-job.ts';

/** Tolerance for two clocks that do not run at the same rate. */
const CLOCK_MARGIN_MS = 1_000;

export type InFlightJob = ReturnType<typeof createInFlightJob>;

/**
 * A job that was sent to the workers. Open until `end` is called or its lease expires; later results are ignored, because its
 * ids may be in another job by then.
 */
export function createInFlightJob(deps: {
  upstream: string;
  fencingToken: string;
  submissionIds: readonly string[];
  report: (observation: Observation) => void;
  clock: Clock;
  sentAt: number;
  endsAt: number;
  onExpired: () => void;
}) {
  const { upstream, fencingToken, submissionIds, report, clock, sentAt, endsAt, onExpired } = deps;
  const ids = new Set(submissionIds);
  const remaining = new Set(submissionIds);
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const cancelLease = clock.after(endsAt - clock.now(), () => {
    resolve();
    onExpired();
  });

  return {
    ...{ upstream, fencingToken, sentAt, report, ended },
    /** Ends the job. Idempotent. */
    end(): void {
      cancelLease();
      resolve();
    },
    /**
     * Classifies and reports the responses, each id once. Reports none if an id is not in this job, or if a request took longer
     * than the job has existed: then the result does not come from a worker that processed this job. `at` is this server's time.
     */
    accept(polled: readonly Polled[]): 'accepted' | 'foreign_id' | 'implausible_time' {
      const at = clock.now();
      const longestMs = at - sentAt + CLOCK_MARGIN_MS;
      for (const { submission_id, duration_ms } of polled) {
        if (!ids.has(submission_id)) return 'foreign_id';
        if (duration_ms > longestMs) return 'implausible_time';
      }
      if (at >= endsAt) return 'accepted';
      for (const { submission_id: submissionId, duration_ms: durationMs, response } of polled)
        if (remaining.delete(submissionId))
          report({ submissionId, at, durationMs, ...classify(submissionId, response) });
      return 'accepted';
    },
    /** Removes and returns the ids without a response if requests of `neededMs` would end before the lease; else none. */
    reclaim(neededMs: number): string[] {
      if (clock.now() + neededMs >= endsAt) return [];
      const open = [...remaining];
      remaining.clear();
      return open;
    },
  };
}
