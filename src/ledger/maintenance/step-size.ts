/** A step takes longer only if its rows are read from the disk, or on a very slow machine. */
const LONG_MS = 10;

/**
 * The number of rows of one step of a task. It begins with one row and doubles up to `max`, and is halved after each step that took long: a row
 * that the system has to read from the disk takes a hundred times as long, and only its step shows which rows these are.
 */
export class StepSize {
  readonly #max: number;
  #rows = 1;

  constructor(max: number) {
    this.#max = max;
  }

  /** Runs a step with the current number of rows. */
  run<T>(step: (rows: number) => T): T {
    const from = performance.now();
    const result = step(this.#rows);
    const isLong = performance.now() - from > LONG_MS;
    this.#rows = isLong ? Math.max(1, this.#rows >> 1) : Math.min(this.#max, this.#rows * 2);
    return result;
  }
}
