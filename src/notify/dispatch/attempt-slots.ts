import type { Clock } from '../../domain/clock.ts';
import type { DestinationPriority } from './destination-queue.ts';

/** An attempt older than this no longer occupies a slot: most receivers respond sooner. */
const SLOT_MS = 1_000;
const SLOTS_PER_PRIORITY = 256;
/** Callback attempts in flight, of any age: a client may register thousands of callback URLs that never respond. */
const MAX_CALLBACKS = 2_048;

/**
 * Limits the attempts in flight. Each attempt occupies a slot of its priority for one second at most, so receivers that do not
 * respond delay others by no more than that. Longer attempts are limited per destination, and for callbacks in total.
 */
export class AttemptSlots {
  readonly #clock: Clock;
  readonly #used: Record<DestinationPriority, number> = { proven: 0, unproven: 0, proven_callback: 0, callback: 0 };
  #callbacks = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  available(priority: DestinationPriority): number {
    const slots = SLOTS_PER_PRIORITY - this.#used[priority];
    return isCallback(priority) ? Math.min(slots, MAX_CALLBACKS - this.#callbacks) : slots;
  }

  /** Call the returned function when the attempt ends. `onFree` is called if the slot becomes free before that. */
  acquire(priority: DestinationPriority, onFree: () => void): () => void {
    this.#used[priority] += 1;
    if (isCallback(priority)) this.#callbacks += 1;
    let holdsSlot = true;
    const free = () => {
      if (holdsSlot) this.#used[priority] -= 1;
      holdsSlot = false;
    };
    const cancel = this.#clock.after(SLOT_MS, () => {
      free();
      onFree();
    });
    return () => {
      cancel();
      free();
      if (isCallback(priority)) this.#callbacks -= 1;
    };
  }
}

function isCallback(priority: DestinationPriority): boolean {
  return priority === 'callback' || priority === 'proven_callback';
}
