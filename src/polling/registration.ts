import type { Clock } from '../lib/clock.ts';
import type { SubmissionQueries } from '../submissions/submission-queries.ts';
import type { Paced } from './poll-queues.ts';
import type { PollingStores } from './polling-stores.ts';
import type { Scheduler } from './scheduler.ts';

/** Submissions that are read from the ledger at once after a restart. */
const PAGE_SIZE = 5_000;

type WatchedPage = ReturnType<SubmissionQueries['listWatched']>;
type RegistrationDeps = {
  upstream: string;
  scheduler: Scheduler;
  ledger: PollingStores;
  clock: Clock;
  /** How long after a failed read the next one follows. */
  retryMs: number;
  onPage: () => void;
  onFailed: (error: unknown) => void;
  onEnd: () => void;
};

/**
 * Registers the open submissions of the ledger with the scheduler after a start, page by page, so
 * that the process serves callers in between; a million submissions take seconds. Polling begins
 * when all are registered: whether "not found" is believed depends on what the upstream has shown
 * before.
 */
export class Registration {
  readonly #deps: RegistrationDeps;
  #cancel: (() => void) | undefined;
  /** Submissions that were tracked again while older ones are being registered. */
  readonly #retracked: Paced[] = [];

  constructor(deps: RegistrationDeps) {
    this.#deps = deps;
  }

  get isRunning(): boolean {
    return this.#cancel !== undefined;
  }

  /** Throws what the ledger throws. */
  read(after = 0): WatchedPage {
    const { ledger, upstream } = this.#deps;
    return ledger.submissions.listWatched(upstream, { after, limit: PAGE_SIZE });
  }

  /** Tries a failed start again. */
  retry(start: () => void): void {
    const { clock, retryMs } = this.#deps;
    this.#cancel = clock.after(retryMs, start);
  }

  run({ watched, next }: WatchedPage): void {
    const { scheduler, clock, onPage, onEnd } = this.#deps;
    onPage();
    const now = clock.now();
    for (const item of watched) scheduler.resume(item, now);
    this.#cancel = next === null ? undefined : clock.after(0, () => this.#continue(next));
    if (next !== null) return;
    for (const item of this.#retracked.splice(0)) {
      scheduler.add(item, now);
      scheduler.pollBy(item.submissionId, now);
    }
    onEnd();
  }

  /** A submission that is tracked again is remembered: the ledger may already have listed it. */
  addRetracked(item: Paced): void {
    this.#retracked.push(item);
  }

  cancel(): void {
    this.#cancel?.();
  }

  #continue(after: number): void {
    let page: WatchedPage;
    try {
      page = this.read(after);
    } catch (error) {
      this.#deps.onFailed(error);
      this.retry(() => this.#continue(after));
      return;
    }
    this.run(page);
  }
}
