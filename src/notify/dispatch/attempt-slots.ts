import type { Clock } from '../../domain/clock.ts';
import type { DestinationPriority } from './destination-queue.ts';

/** After this an attempt gives its place to others: whoever answers does so sooner as a rule. */
const YOUNG_MS = 1_000;
const MAX_YOUNG: Record<DestinationPriority, number> = {
  proven: 256,
  unproven: 256,
  proven_callback: 256,
  callback: 256,
};
/** Callbacks under way, of whatever age: anybody may name thousands that hang. */
const MAX_CALLBACKS = 2_048;

/**
 * How many attempts may be under way. Each takes a place among its own kind for a second at most, so those that hang delay
 * others by that and no more. What hangs for longer is bounded by its own lane, and callbacks all together.
 */
export class AttemptSlots {
  readonly #clock: Clock;
  readonly #young: Record<DestinationPriority, number> = { proven: 0, unproven: 0, proven_callback: 0, callback: 0 };
  #callbacks = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** For so many attempts of that kind there is a place. */
  available(kind: DestinationPriority): number {
    const young = MAX_YOUNG[kind] - this.#young[kind];
    return isCallback(kind) ? Math.min(young, MAX_CALLBACKS - this.#callbacks) : young;
  }

  /** An attempt begins; `onFree` is called when its place is free although it has not ended. Call what is given back at its end. */
  acquire(kind: DestinationPriority, onFree: () => void): () => void {
    this.#young[kind] += 1;
    if (isCallback(kind)) this.#callbacks += 1;
    let isYoung = true;
    const age = () => {
      if (isYoung) this.#young[kind] -= 1;
      isYoung = false;
    };
    const cancel = this.#clock.after(YOUNG_MS, () => {
      age();
      onFree();
    });
    return () => {
      cancel();
      age();
      if (isCallback(kind)) this.#callbacks -= 1;
    };
  }
}

function isCallback(kind: DestinationPriority): boolean {
  return kind === 'callback' || kind === 'proven_callback';
}
