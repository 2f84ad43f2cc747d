import type { Observation } from '../monitor/classify.ts';
import type { Clock } from '../monitor/ports.ts';
import type { Answered } from './poll-job.ts';

/**
 * One job that is out, as the server knows it. Open until it is landed or its lease is over; after that nothing that comes
 * counts any more, because the ids may have been handed out again.
 */
export class Flight {
  /** Resolves when it is over. */
  readonly over: Promise<void>;
  readonly upstream: string;
  readonly sentAt: number;
  readonly report: (observation: Observation) => void;
  readonly #left: Set<string>;
  readonly #clock: Clock;
  readonly #endsAt: number;
  readonly #end: () => void;

  constructor(deps: {
    upstream: string;
    submissionIds: readonly string[];
    report: (observation: Observation) => void;
    clock: Clock;
    sentAt: number;
    endsAt: number;
    onLost: () => void;
  }) {
    const { clock, endsAt } = deps;
    this.upstream = deps.upstream;
    this.sentAt = deps.sentAt;
    this.#left = new Set(deps.submissionIds);
    this.report = deps.report;
    this.#clock = clock;
    this.#endsAt = endsAt;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.over = promise;
    const cancelLease = clock.after(endsAt - clock.now(), () => {
      resolve();
      deps.onLost();
    });
    this.#end = () => {
      cancelLease();
      resolve();
    };
  }

  /** Of its ids only, each once. `at` is this server's: the clocks of workers are their own. */
  arrive(answers: readonly Answered[]): void {
    const at = this.#clock.now();
    if (at >= this.#endsAt) return;
    for (const { submission_id: submissionId, duration_ms: durationMs, verdict } of answers)
      if (this.#left.delete(submissionId)) this.report({ submissionId, at, durationMs, ...verdict });
  }

  /** The ids without an answer, if a request of `neededMs` about them still ends in time. They are the caller's now. */
  takeBack(neededMs: number): string[] {
    if (this.#clock.now() + neededMs >= this.#endsAt) return [];
    const ids = [...this.#left];
    this.#left.clear();
    return ids;
  }

  land(): void {
    this.#end();
  }
}
