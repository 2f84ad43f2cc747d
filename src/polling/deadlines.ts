import { LedgerUnavailableError } from '../ledger/errors.ts';
import type { EndedSubmission, NetDeadline, WatcherLedger } from '../submissions/ports.ts';
import type { OutageJournal } from './outage-journal.ts';
import type { Scheduler } from './scheduler.ts';

/** The last poll is due this long before the deadline, so that its response arrives in time. */
export const LAST_POLL_MS = 2_000;
/** Each page reads over those of the same deadline that earlier pages had. */
const POLLED_AT_ONCE = 1_000;
/** One transaction ends them, in which nothing else runs: each 0.03 ms, with 100 webhooks 3 ms. */
const ENDED_AT_ONCE = 50;
const AFTER_ALL = Number.MAX_SAFE_INTEGER;

type DeadlinesDeps = {
  upstream: string;
  scheduler: Scheduler;
  ledger: WatcherLedger;
  journal: OutageJournal;
  /** Receives why a submission could not be ended. */
  onFailed: (error: unknown) => void;
};

/** A place in the order of deadlines. `id`: the row of the submission. */
type Position = Pick<NetDeadline, 'at' | 'id'>;

const NONE: Position = { at: Number.NEGATIVE_INFINITY, id: AFTER_ALL };

/**
 * Ends the open submissions of one upstream at their deadlines, whatever the upstream responds, and
 * has each polled once more shortly before. A deadline that passes while nothing can be polled, or
 * that had passed when a submission was tracked, is decided by the next response instead.
 *
 * Deadlines are compared in net time: epoch milliseconds without the outages of the upstream. It
 * stands still during an outage, so the net deadline of a submission never changes. The ledger has
 * the deadlines.
 */
export class Deadlines {
  readonly #deps: DeadlinesDeps;
  /** Up to this deadline, submissions have ended or wait for their next response. */
  #passed = NONE;
  /** Up to this deadline, the last polls are due. */
  #polled = NONE;
  /** When the next deadline needs attention, in net time. */
  #nextAt = Number.POSITIVE_INFINITY;

  constructor(deps: DeadlinesDeps) {
    this.#deps = deps;
  }

  /** Polls can be sent from now on, after a time in which they could not. */
  begin(now: number): void {
    this.pollAgain();
    this.#passUntil(this.#net(now));
  }

  /** Makes the last polls before the next deadlines due again, after an outage. */
  pollAgain(): void {
    if (this.#passed.at < this.#polled.at) this.#polled = this.#passed;
    this.#nextAt = Number.NEGATIVE_INFINITY;
  }

  /** Adds a new deadline of a submission. */
  add(submissionId: string, netDeadline: number, now: number): void {
    if (netDeadline <= Math.max(this.#polled.at, this.#passed.at))
      this.#deps.scheduler.pollBy(submissionId, now);
    if (netDeadline > this.#passed.at)
      this.#nextAt = Math.min(this.#nextAt, netDeadline - LAST_POLL_MS);
  }

  /** Whether `pass` must be called. */
  isDue(now: number): boolean {
    const netNow = this.#net(now);
    if (netNow >= this.#nextAt) return true;
    this.#passUntil(netNow);
    return false;
  }

  /** When `pass` must be called; Infinity: something else changes before. */
  wakeAt(now: number): number {
    const { limits, size } = this.#deps.scheduler;
    const { breaker, pause } = limits;
    if (breaker.isOpen || size === 0) return Number.POSITIVE_INFINITY;
    return Math.max(now, pause.until) + this.#nextAt - this.#net(now);
  }

  /**
   * Ends the submissions whose deadlines have passed, and returns them. Makes the last polls before
   * the next deadlines due. Throws what the ledger throws.
   */
  pass(now: number): EndedSubmission[] {
    const { ledger, scheduler, upstream } = this.#deps;
    const netNow = this.#net(now);
    const until = netNow + LAST_POLL_MS;
    const coming = { after: this.#polled, until, limit: POLLED_AT_ONCE };
    const last = ledger.listDeadlines(upstream, coming);
    for (const { submissionId } of last) scheduler.pollBy(submissionId, now);
    const allPolled = last.length < POLLED_AT_ONCE;
    this.#polled = allPolled ? { at: until, id: AFTER_ALL } : (last.at(-1) ?? this.#polled);

    const page = { after: this.#passed, until: netNow, limit: ENDED_AT_ONCE };
    const due = ledger.listDeadlines(upstream, page);
    const ids = due.map(({ submissionId }) => submissionId);
    const ended = this.#expire(ids, now);
    const allEnded = due.length < ENDED_AT_ONCE;
    if (allEnded) this.#passUntil(netNow);
    else this.#passed = due.at(-1) ?? this.#passed;
    this.#nextAt =
      allPolled && allEnded
        ? Math.min(this.#firstAfter(this.#passed.at), this.#firstAfter(until) - LAST_POLL_MS)
        : netNow;
    return ended;
  }

  /** One that cannot be ended does not affect the others; its next response decides. */
  #expire(ids: readonly string[], now: number): EndedSubmission[] {
    const { ledger, journal, onFailed } = this.#deps;
    try {
      return ledger.expire(ids, now, (id) => journal.lastFailureOf(id));
    } catch (error) {
      if (error instanceof LedgerUnavailableError) throw error;
      if (ids.length > 1) return ids.flatMap((id) => this.#expire([id], now));
      onFailed(error);
      return [];
    }
  }

  #passUntil(netNow: number): void {
    if (netNow > this.#passed.at) this.#passed = { at: netNow, id: AFTER_ALL };
  }

  #firstAfter(at: number): number {
    const { ledger, upstream } = this.#deps;
    const page = { after: { at, id: AFTER_ALL }, until: AFTER_ALL, limit: 1 };
    return ledger.listDeadlines(upstream, page)[0]?.at ?? Number.POSITIVE_INFINITY;
  }

  #net(now: number): number {
    return now - this.#deps.journal.outageMs(now);
  }
}
