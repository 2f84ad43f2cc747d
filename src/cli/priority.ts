import { constants, setPriority } from 'node:os';

/**
 * Lets a server on the same machine run first. Must be called by commands that use a core for minutes: a server that waits for one responds
 * late.
 */
export function yieldToServer(): void {
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // A sandbox may refuse it; the command then runs as before.
  }
}
