import type { Observation } from '../domain/classify.ts';
import type { Clock } from '../domain/clock.ts';
import { FairQueue, isWithinFairShare } from './fair-queue.ts';

/**
 * `unanswered`, because: `budget`: there was no place in it in time; `out`: the upstream is; `lost`: it was asked, and no
 * answer came; `stopping`: this server is. `retryAfterMs`: how long until it is worth another try.
 */
export type OnDemandResult =
  | { kind: 'answered'; observation: Observation }
  | { kind: 'unanswered'; reason: 'budget' | 'out' | 'lost' | 'stopping'; retryAfterMs: number };

type OnDemandPoll = {
  asked: Promise<OnDemandResult>;
  settle: (asked: OnDemandResult) => void;
  /** While it has no place in the budget: the clients in whose lines it waits. */
  waitsFor: Set<string>;
};

/** Waiting questions beyond which a client is refused that has its share of them. */
const MAX_WAITING = 10_000;

/**
 * Questions out of turn, each id once however many ask: those without a place in the budget yet, and those on their way.
 * Clients take turns for places, so that one that asks for many ids cannot make the others wait behind all of them.
 */
export class OnDemandPolls {
  readonly #waiting = new FairQueue<string>();
  readonly #open = new Map<string, OnDemandPoll>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  has(submissionId: string): boolean {
    return this.#open.has(submissionId);
  }

  /** Whether a question waits for a place in the budget. */
  get isWaiting(): boolean {
    return this.#waiting.size > 0;
  }

  /** Whether a new question of this client may wait. */
  mayQueue(client: string): boolean {
    const own = this.#waiting.sizeOf(client);
    const clients = this.#waiting.clients + (own > 0 ? 0 : 1);
    return isWithinFairShare(1, { own, all: this.#waiting.size, limit: MAX_WAITING, clients });
  }

  /** The waiting question whose turn is next. */
  get next(): string | undefined {
    return this.#waiting.peek();
  }

  /** The next question is on its way; with a place in the budget that its client had its turn for, or without one. */
  take(isOfBudget: boolean): void {
    const submissionId = this.next;
    if (submissionId === undefined) return;
    if (isOfBudget) this.#waiting.shift();
    this.#leaveLines(submissionId);
  }

  /**
   * Joins the question if it is open already. It is given up if it has no place after `placeWithinMs`, and, once it is on
   * its way, if no answer came for `answerWithinMs`.
   */
  add(
    submissionId: string,
    limits: { placeWithinMs: number; answerWithinMs: number },
    client: string,
  ): Promise<OnDemandResult> {
    const known = this.#open.get(submissionId);
    if (known) {
      if (known.waitsFor.size > 0) this.#enterLine(submissionId, known, client);
      return known.asked;
    }
    const { placeWithinMs, answerWithinMs } = limits;
    const { promise, resolve } = Promise.withResolvers<OnDemandResult>();
    const giveUp = (reason: 'budget' | 'lost') => settle({ kind: 'unanswered', reason, retryAfterMs: placeWithinMs });
    let cancelTimer = this.#clock.after(placeWithinMs, () => {
      if (question.waitsFor.size > 0) giveUp('budget');
      else cancelTimer = this.#clock.after(answerWithinMs, () => giveUp('lost'));
    });
    const settle = (asked: OnDemandResult) => {
      cancelTimer();
      this.#leaveLines(submissionId);
      this.#open.delete(submissionId);
      resolve(asked);
    };
    const question: OnDemandPoll = { asked: promise, settle, waitsFor: new Set() };
    this.#open.set(submissionId, question);
    this.#enterLine(submissionId, question, client);
    return promise;
  }

  resolve(observation: Observation): void {
    this.#open.get(observation.submissionId)?.settle({ kind: 'answered', observation });
  }

  /** The upstream is out: those without a place need not wait for one. */
  rejectWaiting(retryAfterMs: number): void {
    for (const { waitsFor, settle } of [...this.#open.values()])
      if (waitsFor.size > 0) settle({ kind: 'unanswered', reason: 'out', retryAfterMs });
  }

  /** Nobody answers any more. */
  close(): void {
    for (const { settle } of [...this.#open.values()])
      settle({ kind: 'unanswered', reason: 'stopping', retryAfterMs: 1_000 });
  }
  #enterLine(submissionId: string, { waitsFor }: OnDemandPoll, client: string): void {
    waitsFor.add(client);
    this.#waiting.add(client, submissionId);
  }

  #leaveLines(submissionId: string): void {
    const { waitsFor } = this.#open.get(submissionId) ?? {};
    for (const client of waitsFor ?? []) this.#waiting.delete(client, submissionId);
    waitsFor?.clear();
  }
}
