import { classify, type Observation } from '../../domain/classify.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Polled } from './poll-job.ts';

/** Beyond the time that has passed here, for two clocks that do not run equally fast. */
const CLOCK_MARGIN_MS = 1_000;

/**
 * One job that is out, as the server knows it. Open until it is landed or its lease is over; after that nothing that comes
 * counts any more, because the ids may have been handed out again.
 */
export class InFlightJob {
  /** Resolves when it is over. */
  readonly ended: Promise<void>;
  readonly upstream: string;
  readonly fencingToken: string;
  readonly sentAt: number;
  readonly report: (observation: Observation) => void;
  readonly #ids: ReadonlySet<string>;
  readonly #left: Set<string>;
  readonly #clock: Clock;
  readonly #endsAt: number;
  readonly #end: () => void;

  constructor(deps: {
    upstream: string;
    epoch: string;
    submissionIds: readonly string[];
    report: (observation: Observation) => void;
    clock: Clock;
    sentAt: number;
    endsAt: number;
    onLost: () => void;
  }) {
    const { clock, endsAt } = deps;
    this.upstream = deps.upstream;
    this.fencingToken = deps.epoch;
    this.sentAt = deps.sentAt;
    this.#ids = new Set(deps.submissionIds);
    this.#left = new Set(deps.submissionIds);
    this.report = deps.report;
    this.#clock = clock;
    this.#endsAt = endsAt;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    const cancelLease = clock.after(endsAt - clock.now(), () => {
      resolve();
      deps.onLost();
    });
    this.#end = () => {
      cancelLease();
      resolve();
    };
  }

  /**
   * Classifies and reports the responses, each id once. Reports none of them if one is about an id of no poll of this job, or took
   * longer than the job is out: then the result is not of a worker that did this job. `at` is this server's time.
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
      if (this.#left.delete(submissionId))
        this.report({ submissionId, at, durationMs, ...classify(submissionId, response) });
    return 'accepted';
  }

  /** The ids without an answer, if a request of `neededMs` about them still ends in time. They are the caller's now. */
  reclaim(neededMs: number): string[] {
    if (this.#clock.now() + neededMs >= this.#endsAt) return [];
    const ids = [...this.#left];
    this.#left.clear();
    return ids;
  }

  end(): void {
    this.#end();
  }
}
