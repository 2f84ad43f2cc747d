import { LedgerError } from '../ledger/errors.ts';
import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { type Clock, iso } from '../lib/clock.ts';
import type { Observation } from '../submissions/classify.ts';
import type { Deadline, EndedSubmission } from '../submissions/store-results.ts';
import type { SubmissionQueries } from '../submissions/submission-queries.ts';
import type { SubmissionStore } from '../submissions/submission-store.ts';
import type { UpstreamStore } from '../submissions/upstream.ts';
import type { Paced } from './poll-queues.ts';
import type { Scheduler } from './scheduler.ts';
import { reasonOf } from './upstream-health.ts';

export type PollingStores = {
  database: LedgerDatabase;
  store: SubmissionStore;
  submissions: SubmissionQueries;
  upstreams: UpstreamStore;
};

/** A submission ends without an answer this long after its deadline. */
const ANSWER_MS = 60_000;
/** Submissions whose last polls are awaited at once. */
const AWAITED_AT_ONCE = 1_000;
/** One transaction ends them, in which nothing else runs: each 0.03 ms, with 100 webhooks 3 ms. */
const ENDED_AT_ONCE = 50;
const AFTER_ALL = Number.MAX_SAFE_INTEGER;

type DeadlinesDeps = {
  upstream: string;
  scheduler: Scheduler;
  ledger: PollingStores;
  onFailed: (error: unknown) => void;
};

/**
 * `since`: when the wait for its answer began, or its last poll was sent. `failure`: the newest
 * response, if it is none.
 */
type Awaited = { since: number; failure: string | null; isPolled: boolean };

/**
 * The deadlines of the open submissions of one upstream. After a deadline, a last poll decides;
 * without an answer within a minute, the submission ends. A poll in flight or delayed by the budget
 * may take longer, unless an outage or a pause lasts a minute. The deadlines are stored in the
 * ledger.
 */
export class Deadlines {
  readonly #deps: DeadlinesDeps;
  /** Up to this deadline, the last polls are requested. `id`: a row of the ledger. */
  #passed: Pick<Deadline, 'at' | 'id'> = { at: Number.NEGATIVE_INFINITY, id: AFTER_ALL };
  readonly #awaited = new Map<string, Awaited>();
  #pollableSince = Number.NEGATIVE_INFINITY;
  #nextAt = Number.NEGATIVE_INFINITY;
  #waitEndsAt = Number.POSITIVE_INFINITY;
  /** Whether a wait is over except for a poll that is still to come. */
  #isOverdue = false;

  constructor(deps: DeadlinesDeps) {
    this.#deps = deps;
  }

  /** Polls can be sent from now on, after a time in which they could not. */
  begin(now: number): void {
    this.#pollableSince = now;
    for (const awaited of this.#awaited.values()) awaited.since = now;
  }

  add(submissionId: string, deadlineAt: number, now: number): void {
    if (deadlineAt <= this.#passed.at) this.#await(submissionId, deadlineAt, now);
    else this.#nextAt = Math.min(this.#nextAt, deadlineAt);
  }

  /** Notes the newest response about a submission, which is no answer if it stays open. */
  observe(observation: Observation): void {
    const awaited = this.#awaited.get(observation.submissionId);
    if (!awaited) return;
    awaited.failure = reasonOf(observation);
    const sentAt = observation.at - observation.durationMs;
    if (awaited.isPolled || sentAt < awaited.since) return;
    // The request budget may have delayed it.
    awaited.since = sentAt;
    awaited.isPolled = true;
  }

  isDue(now: number): boolean {
    return this.#isOverdue || now >= this.wakeAt;
  }

  /** When `pass` must be called; Infinity: something else changes before. */
  get wakeAt(): number {
    if (this.#deps.scheduler.size === 0) return Number.POSITIVE_INFINITY;
    const isFull = this.#awaited.size >= AWAITED_AT_ONCE;
    return Math.min(isFull ? Number.POSITIVE_INFINITY : this.#nextAt, this.#waitEndsAt);
  }

  /**
   * Requests the last polls of passed deadlines. Returns the submissions that ended. Throws what
   * the ledger throws.
   */
  pass(now: number): EndedSubmission[] {
    const { scheduler } = this.#deps;
    if (now >= this.#nextAt && this.#awaited.size < AWAITED_AT_ONCE) this.#request(now);
    const ended: string[] = [];
    this.#waitEndsAt = Number.POSITIVE_INFINITY;
    this.#isOverdue = false;
    for (const [submissionId, { since }] of this.#awaited) {
      const endsAt = since + ANSWER_MS;
      const awaitedUntil = scheduler.awaitedUntil(submissionId, now, ANSWER_MS);
      if (!scheduler.find(submissionId)) this.#awaited.delete(submissionId);
      else if (now < endsAt) this.#waitEndsAt = Math.min(this.#waitEndsAt, endsAt);
      else if (now < awaitedUntil) {
        this.#isOverdue = true;
        this.#waitEndsAt = Math.min(this.#waitEndsAt, awaitedUntil);
      } else ended.push(submissionId);
      if (ended.length === ENDED_AT_ONCE) {
        this.#waitEndsAt = now;
        break;
      }
    }
    const submissions = this.#end(ended, now);
    for (const submissionId of ended) this.#awaited.delete(submissionId);
    return submissions;
  }

  #request(now: number): void {
    const { ledger, upstream } = this.#deps;
    const limit = AWAITED_AT_ONCE - this.#awaited.size;
    const page = ledger.submissions.listDeadlines(upstream, {
      after: this.#passed,
      until: now,
      limit,
    });
    for (const { submissionId, at } of page) this.#await(submissionId, at, now);
    const last = page.at(-1);
    this.#passed = page.length === limit && last ? last : { at: now, id: AFTER_ALL };
    const rest = { after: this.#passed, until: AFTER_ALL, limit: 1 };
    this.#nextAt =
      ledger.submissions.listDeadlines(upstream, rest)[0]?.at ?? Number.POSITIVE_INFINITY;
  }

  #await(submissionId: string, deadlineAt: number, now: number): void {
    this.#deps.scheduler.pollBy(submissionId, now);
    const since = Math.max(deadlineAt, this.#pollableSince);
    this.#awaited.set(submissionId, { since, failure: null, isPolled: false });
    this.#waitEndsAt = Math.min(this.#waitEndsAt, since + ANSWER_MS);
  }

  /** One that cannot be ended does not affect the others. */
  #end(ids: readonly string[], now: number): EndedSubmission[] {
    const { ledger, onFailed } = this.#deps;
    try {
      return ledger.store.expire(ids, now, (id) => this.#reasonOf(id));
    } catch (error) {
      if (error instanceof LedgerError) throw error;
      if (ids.length > 1) return ids.flatMap((id) => this.#end([id], now));
      onFailed(error);
      return [];
    }
  }

  #reasonOf(submissionId: string): string {
    const { health } = this.#deps.scheduler;
    const { since, failure } = this.#awaited.get(submissionId) as Awaited;
    const from = iso(Math.min(since, health.failingSince ?? since));
    const reason = failure ?? health.reason;
    return `the upstream has not answered since ${from}${reason === null ? '' : `: ${reason}`}`;
  }
}

/** Submissions that are read from the ledger at once after a restart. */
const PAGE_SIZE = 5_000;

type WatchedPage = ReturnType<SubmissionQueries['listWatched']>;
type RegistrationDeps = {
  upstream: string;
  scheduler: Scheduler;
  ledger: PollingStores;
  clock: Clock;
  /** Delay after a failed read. */
  retryMs: number;
  onPage: () => void;
  onFailed: (error: unknown) => void;
  onEnd: () => void;
};

/**
 * Registers the ledger's open submissions after a start, in pages, because a million take seconds.
 * Polling begins after all, because they decide whether "not found" is believed.
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

  read(after = 0): WatchedPage {
    const { ledger, upstream } = this.#deps;
    return ledger.submissions.listWatched(upstream, { after, limit: PAGE_SIZE });
  }

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
