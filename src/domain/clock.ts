/** The time, in epoch milliseconds, and a timer. It never goes back within a process. */
export type Clock = {
  now(): number;
  /**
   * How far the clock was set forward in all, because the machine slept or its clock was set. In that time nothing was polled, or it
   * never passed. Absent: it is never set.
   */
  skippedMs?(): number;
  /** Runs once after `delayMs` (0: as soon as the current work is done). Returns how to call it off. */
  after(delayMs: number, run: () => void): () => void;
};
