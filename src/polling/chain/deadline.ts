import type { Clock } from '../../lib/clock.ts';

/** A timer so late shows that the process was stopped; so long, it then reads its sockets. */
const STOPPED_MS = 1_000;

/**
 * Calls `run` after the delay. If the process was stopped until then, it first reads what arrived
 * meanwhile. Returns a function that cancels it.
 */
export function deadline(clock: Clock, delayMs: number, run: () => void): () => void {
  const dueAt = clock.now() + delayMs;
  let cancel = clock.after(delayMs, () => {
    if (clock.now() - dueAt < STOPPED_MS) run();
    else cancel = clock.after(STOPPED_MS, run);
  });
  return () => cancel();
}
