/**
 * Future actions, earliest first. Actions with equal times keep the order in which they were added,
 * so that runs are reproducible.
 */
export class Agenda<T> {
  /** In descending order of their times, so that removing the earliest moves no other entry. */
  readonly #entries: { atMs: number; item: T }[] = [];

  add(atMs: number, item: T): void {
    let [from, to] = [0, this.#entries.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((this.#entries[middle]?.atMs ?? 0) > atMs) from = middle + 1;
      else to = middle;
    }
    this.#entries.splice(from, 0, { atMs, item });
  }

  nextAt(): number | undefined {
    return this.#entries.at(-1)?.atMs;
  }

  /** Removes and returns the earliest entry that is due at nowMs. */
  takeDue(nowMs: number): { atMs: number; item: T } | undefined {
    return (this.nextAt() ?? Number.POSITIVE_INFINITY) <= nowMs ? this.#entries.pop() : undefined;
  }
}
