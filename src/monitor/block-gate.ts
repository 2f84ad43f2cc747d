/** While the period is not known: no chain makes blocks faster. */
const LEAST_PERIOD_MS = 500;
/** Blocks that are final at once may be a few ahead of the clock, and answers come late. */
const TOLERANCE = 4;
/** So far back a block is still of use; what is older was final long before it was asked about. */
const MOST_BACK = 64;
/** So many odd ones in a row that fit each other are another chain. */
const ENOUGH = 8;

type Seen = { block: number; at: number };

/**
 * Which of the block numbers that answers name can be believed. One that is far from where the chain must be by now would
 * stay "the newest" for ever, and everything learned would be measured by it. When several in a row are elsewhere, and
 * together, the chain was reset or replaced.
 */
export class BlockGate {
  #newest: Seen | null;
  #odd: Seen | null = null;
  #oddInARow = 0;

  constructor(newest: Seen | null = null) {
    this.#newest = newest;
  }

  /** `changed`: everything that was learned from blocks is of another chain; this one begins the new one. */
  judge(block: number, at: number, periodMs: number | null): 'believed' | 'odd' | 'changed' {
    if (!Number.isSafeInteger(block) || block < 0) return 'odd';
    if (!this.#newest || fits(block, at, this.#newest, periodMs)) {
      this.#oddInARow = 0;
      if (!this.#newest || block > this.#newest.block) this.#newest = { block, at };
      return 'believed';
    }
    this.#oddInARow = this.#odd && fits(block, at, this.#odd, null) ? this.#oddInARow + 1 : 1;
    this.#odd = { block, at };
    if (this.#oddInARow < ENOUGH) return 'odd';
    this.#newest = this.#odd;
    this.#oddInARow = 0;
    return 'changed';
  }
}

function fits(block: number, at: number, known: Seen, periodMs: number | null): boolean {
  const elapsedMs = Math.max(0, at - known.at);
  const most = periodMs === null ? elapsedMs / LEAST_PERIOD_MS : (2 * elapsedMs) / periodMs;
  return block >= known.block - MOST_BACK && block <= known.block + TOLERANCE + most;
}
