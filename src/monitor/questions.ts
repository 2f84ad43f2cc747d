import type { Observation } from './classify.ts';
import type { Clock } from './ports.ts';

/** `busy`: there was no place in the budget in time, or the upstream is out; how long until it is worth another try. */
export type Asked =
  | { kind: 'answered'; observation: Observation }
  | { kind: 'busy'; upstreamUp: boolean; retryAfterMs: number };

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
   * Joins the question if it is open already. It is given up after `timeoutMs` if it is not on its way by then, and after
   * as long again if it is: its answer may be lost.
   */
  add(submissionId: string, timeoutMs: number): Promise<Asked> {
    const known = this.#open.get(submissionId);
    if (known) return known.asked;
    const { promise, resolve } = Promise.withResolvers<Asked>();
    const giveUp = () => settle({ kind: 'busy', upstreamUp: true, retryAfterMs: timeoutMs });
    let cancelTimer = this.#clock.after(timeoutMs, () => {
      if (this.waiting.has(submissionId)) giveUp();
      else cancelTimer = this.#clock.after(timeoutMs, giveUp);
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

  /** Nobody answers any more. */
  close(): void {
    for (const { settle } of this.#open.values()) settle({ kind: 'busy', upstreamUp: true, retryAfterMs: 1_000 });
  }
}
