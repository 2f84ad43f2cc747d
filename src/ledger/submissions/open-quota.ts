import type { StatusCounts } from './status-counts.ts';

/** A request that would exceed the quota. `begins`: number of submissions that it would begin to track. */
export type QuotaExcess = { open: number; max: number; begins: number };

/** Limits the open submissions of a ledger. */
export class OpenQuota {
  /** null: no limit. If the limit is below the number of open submissions, only further submissions are refused. */
  max: number | null = null;
  /** Called for each refused request. */
  onExceeded: () => void = () => undefined;
  readonly #counts: StatusCounts;
  #held = 0;

  constructor(counts: StatusCounts) {
    this.#counts = counts;
  }

  /** Number of committed open submissions. */
  get open(): number {
    const { tracking, pending, failing } = this.#counts.get();
    return tracking + pending + failing;
  }

  /** Returns whether a request exceeds the quota. `uncommitted`: submissions that the same transaction has begun to track. */
  exceededBy(begins: number, uncommitted = 0): QuotaExcess | undefined {
    const { max } = this;
    if (max === null || begins === 0) return undefined;
    const open = this.open + uncommitted + this.#held;
    if (open + begins <= max) return undefined;
    this.onExceeded();
    return { open, max, begins };
  }

  /** Reserves a place for a submission whose id the upstream has yet to return. Returns an idempotent function that frees the place. */
  hold(): (() => void) | QuotaExcess {
    const excess = this.exceededBy(1);
    if (excess) return excess;
    this.#held += 1;
    let held = 1;
    return () => {
      this.#held -= held;
      held = 0;
    };
  }
}
