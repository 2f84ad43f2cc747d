import type { Window } from './finality-clock.ts';
import type { Candidate } from './policy.ts';

/** Before so many of the blocks somebody is asked between two of them. */
const SHARE = 0.25;

/**
 * Whoever is final between two blocks shows that they are not what makes final; asked only at blocks, nobody would. So now
 * and then one is asked in between, which finds out a clock that is none.
 */
export class Doubt {
  readonly #random: () => number;
  /** How long before the next block, as a share of the period; null: nobody is asked. */
  #before: number | null = null;
  #who: Candidate | null = null;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** A new block is final. */
  draw(): void {
    this.#before = this.#random() < SHARE ? this.#random() : null;
    this.#who = null;
  }

  /** When to ask this one before the window that it waits for, if it is the one to be asked; not before `earliestAt`. */
  askAt(item: Candidate, window: Window, periodMs: number, bounds: { earliestAt: number; now: number }): number | null {
    if (this.#before === null || (this.#who ?? item) !== item) return null;
    const at = window.until - this.#before * periodMs;
    if (at <= bounds.now || at < bounds.earliestAt || at >= window.from) return null;
    this.#who = item;
    return at;
  }

  isAbout(item: Candidate): boolean {
    return this.#who === item;
  }

  /** It was answered, or is gone. Whether it was the one to be asked, which is then done. */
  settle(item: Candidate): boolean {
    if (this.#who !== item) return false;
    this.#before = null;
    this.#who = null;
    return true;
  }
}
