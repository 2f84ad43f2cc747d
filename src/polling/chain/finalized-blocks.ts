import type { ChainHead } from './port.ts';

/** Announcements that are kept: about six hours of a chain with slots of 20 s. */
const MAX_KEPT = 1_024;
/** Moments from which the time of a block is measured. */
const MEASURED = 20;
const MIN_MEASURED = 5;
/** Wait for the next block until the time of a block is measured. */
const FIRST_STALL_MS = 60_000;
const MIN_STALL_MS = 15_000;
const MAX_STALL_MS = 10 * 60_000;
const BLOCKS_PER_STALL = 3;
/** Blocks that are announced within this time became final together: they are one moment. */
const MOMENT_MS = 1_000;

/** Which blocks a node announced as final, and when. */
export class FinalizedBlocks {
  /** In ascending order of numbers. `isExact`: dawatch was connected when it became final. */
  readonly #kept: (ChainHead & { isExact: boolean })[] = [];
  #newest: ChainHead | null = null;
  /** The highest number of the current connection; null before the first. */
  #highest: number | null = null;
  /** When new blocks of the current connection became final, the first one excluded. */
  readonly #moments: number[] = [];

  /** The highest block that was announced; null before the first. */
  get newest(): ChainHead | null {
    return this.#newest;
  }

  /** Returns whether the block is higher than all others of the current connection. */
  add(head: ChainHead): boolean {
    const isFirst = this.#highest === null;
    if (this.#highest !== null && head.number <= this.#highest) return false;
    this.#highest = head.number;
    const newestMoment = this.#moments.at(-1) ?? Number.NEGATIVE_INFINITY;
    if (!isFirst && head.at - newestMoment >= MOMENT_MS) this.#moments.push(head.at);
    if (this.#moments.length > MEASURED) this.#moments.shift();
    // The chain began anew, or the earlier heads were wrong.
    if (isFirst && this.#newest !== null && head.number < this.#newest.number) {
      this.#kept.length = 0;
      this.#newest = null;
    }
    if (this.#newest === null || head.number > this.#newest.number) {
      this.#newest = head;
      // A node announces its newest final block at the beginning of each subscription.
      this.#kept.push({ ...head, isExact: !isFirst });
      if (this.#kept.length > MAX_KEPT) this.#kept.shift();
    }
    return true;
  }

  /** The connection has ended, so blocks may become final unnoticed. */
  interrupt(): void {
    this.#highest = null;
    this.#moments.length = 0;
  }

  /** Returns when a block was announced as final, epoch milliseconds; null if not known. */
  finalizedAt(blockNumber: number): number | null {
    const index = this.#kept.findIndex(({ number }) => number >= blockNumber);
    const found = this.#kept[index];
    // Blocks up to the first one that is kept may have become final before it.
    return found?.isExact && index > 0 ? found.at : null;
  }

  /**
   * Returns the time without a new block after which the node counts as stalled: three blocks, or
   * three groups of blocks that become final together.
   */
  stallMs(): number {
    const [first, last] = [this.#moments[0], this.#moments.at(-1)];
    if (first === undefined || last === undefined || this.#moments.length < MIN_MEASURED)
      return FIRST_STALL_MS;
    const blockMs = (last - first) / (this.#moments.length - 1);
    return Math.min(MAX_STALL_MS, Math.max(MIN_STALL_MS, BLOCKS_PER_STALL * blockMs));
  }
}
