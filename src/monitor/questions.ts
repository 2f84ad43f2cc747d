import type { Observation } from './classify.ts';
import type { Clock } from './ports.ts';

/**
 * `unanswered`, because: `budget`: there was no place in it in time; `out`: the upstream is; `lost`: it was asked, and no
 * answer came; `stopping`: this server is. `retryAfterMs`: how long until it is worth another try.
 */
export type Asked =
  | { kind: 'answered'; observation: Observation }
  | { kind: 'unanswered'; reason: 'budget' | 'out' | 'lost' | 'stopping'; retryAfterMs: number };

type Question = { asked: Promise<Asked>; settle: (asked: Asked) => void };

/** Questions out of turn, each id once however many ask: those without a place in the budget yet, and those on their way. */
export class Questions {
  /** In the order in which they came. */
  readonly waiting = new Set<string>();
  readonly #open = new Map<string, Question>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  has(submissionId: string): boolean {
    return this.#open.has(submissionId);
  }

  /**
   * Joins the question if it is open already. It is given up if it has no place after `placeWithinMs`, and, once it is on
   * its way, if no answer came for `answerWithinMs`.
   */
  add(submissionId: string, limits: { placeWithinMs: number; answerWithinMs: number }): Promise<Asked> {
    const known = this.#open.get(submissionId);
    if (known) return known.asked;
    const { placeWithinMs, answerWithinMs } = limits;
    const { promise, resolve } = Promise.withResolvers<Asked>();
    const giveUp = (reason: 'budget' | 'lost') => settle({ kind: 'unanswered', reason, retryAfterMs: placeWithinMs });
    let cancelTimer = this.#clock.after(placeWithinMs, () => {
      if (this.waiting.has(submissionId)) giveUp('budget');
      else cancelTimer = this.#clock.after(answerWithinMs, () => giveUp('lost'));
    });
    const settle = (asked: Asked) => {
      cancelTimer();
      this.waiting.delete(submissionId);
      this.#open.delete(submissionId);
      resolve(asked);
    };
    this.#open.set(submissionId, { asked: promise, settle });
    this.waiting.add(submissionId);
    return promise;
  }

  answer(observation: Observation): void {
    this.#open.get(observation.submissionId)?.settle({ kind: 'answered', observation });
  }

  /** The upstream is out: those without a place need not wait for one. */
  giveUpWaiting(retryAfterMs: number): void {
    for (const submissionId of [...this.waiting])
      this.#open.get(submissionId)?.settle({ kind: 'unanswered', reason: 'out', retryAfterMs });
  }

  /** Nobody answers any more. */
  close(): void {
    for (const { settle } of [...this.#open.values()])
      settle({ kind: 'unanswered', reason: 'stopping', retryAfterMs: 1_000 });
  }
}
