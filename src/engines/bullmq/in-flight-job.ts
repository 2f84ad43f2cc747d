import { classify, type Observation } from '../../domain/classify.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Polled } from './poll-job.ts';

/** Tolerance for two clocks that do not run at the same rate. */
const CLOCK_MARGIN_MS = 1_000;

/**
 * A job that was sent to the workers. Open until `end` is called or its lease expires; later results are ignored, because its
 * ids may be in another job by then.
 */
export class InFlightJob {
  readonly ended: Promise<void>;
  /** Ends the job. Idempotent. */
  readonly end: () => void;
  readonly upstream: string;
  readonly fencingToken: string;
  readonly sentAt: number;
  readonly report: (observation: Observation) => void;
  readonly #ids: ReadonlySet<string>;
  readonly #remaining: Set<string>;
  readonly #clock: Clock;
  readonly #endsAt: number;

  constructor(deps: {
    upstream: string;
    fencingToken: string;
    submissionIds: readonly string[];
    report: (observation: Observation) => void;
    clock: Clock;
    sentAt: number;
    endsAt: number;
    onExpired: () => void;
  }) {
    const { clock, endsAt } = deps;
    this.upstream = deps.upstream;
    this.fencingToken = deps.fencingToken;
    this.sentAt = deps.sentAt;
    this.#ids = new Set(deps.submissionIds);
    this.#remaining = new Set(deps.submissionIds);
    this.report = deps.report;
    this.#clock = clock;
    this.#endsAt = endsAt;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    const cancelLease = clock.after(endsAt - clock.now(), () => {
      resolve();
      deps.onExpired();
    });
    this.end = () => {
      cancelLease();
      resolve();
    };
  }

  /**
   * Classifies and reports the responses, each id once. Reports none if an id is not in this job, or if a request took longer
   * than the job has existed: then the result does not come from a worker that processed this job. `at` is this server's time.
   */
  accept(polled: readonly Polled[]): 'accepted' | 'foreign_id' | 'implausible_time' {
    const at = this.#clock.now();
    const longestMs = at - this.sentAt + CLOCK_MARGIN_MS;
    for (const { submission_id, duration_ms } of polled) {
      if (!this.#ids.has(submission_id)) return 'foreign_id';
      if (duration_ms > longestMs) return 'implausible_time';
    }
    if (at >= this.#endsAt) return 'accepted';
    for (const { submission_id: submissionId, duration_ms: durationMs, response } of polled)
      if (this.#remaining.delete(submissionId))
        this.report({ submissionId, at, durationMs, ...classify(submissionId, response) });
    return 'accepted';
  }

  /** Removes and returns the ids without a response if requests of `neededMs` would end before the lease; else none. */
  reclaim(neededMs: number): string[] {
    if (this.#clock.now() + neededMs >= this.#endsAt) return [];
    const ids = [...this.#remaining];
    this.#remaining.clear();
    return ids;
  }
}
