/** The time in epoch milliseconds, which never goes back within a process, and timers. */
export type Clock = {
  now(): number;
  /**
   * Total milliseconds by which the clock was set forward, because the machine slept or its clock
   * was set. Nothing was polled in that time. Absent: the clock is never set.
   */
  skippedMs?(): number;
  /**
   * Runs once after `delayMs` (0: after the current turn of the event loop). Returns a function
   * that cancels it.
   */
  after(delayMs: number, run: () => void): () => void;
};
