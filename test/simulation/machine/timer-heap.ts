/** `at`: when it is due. `order`: breaks ties. */
export type Timer = {
  at: number;
  order: number;
  run: () => void;
  process: number | null;
  isCancelled: boolean;
};

/**
 * Timers, the earliest first. Cancelled ones are dropped when they are due, or when there are many.
 */
export class TimerHeap {
  #heap: Timer[] = [];
  #compactAt = 1_000;

  constructor(timers: readonly Timer[] = []) {
    for (const timer of timers) this.add(timer);
  }

  /** Returns all timers that are not cancelled. */
  all(): Timer[] {
    return this.#heap.filter(({ isCancelled }) => !isCancelled);
  }

  add(timer: Timer): void {
    if (this.#heap.length >= this.#compactAt) this.#compact();
    this.#heap.push(timer);
    this.#rise(this.#heap.length - 1);
  }

  /** Removes and returns the earliest timer that is due by a time; undefined if there is none. */
  take(untilMs: number): Timer | undefined {
    for (
      let first = this.#heap[0];
      first && (first.isCancelled || first.at <= untilMs);
      first = this.#heap[0]
    ) {
      const last = this.#heap.pop() as Timer;
      if (last !== first) {
        this.#heap[0] = last;
        this.#sink();
      }
      if (!first.isCancelled) return first;
    }
    return undefined;
  }

  #compact(): void {
    // A sorted list is a heap.
    this.#heap = this.all().sort((a, b) => (isBefore(a, b) ? -1 : 1));
    this.#compactAt = Math.max(1_000, 2 * this.#heap.length);
  }

  #rise(from: number): void {
    for (
      let at = from, parent = (at - 1) >> 1;
      at > 0 && this.#swapIf(at, parent);
      parent = (at - 1) >> 1
    )
      at = parent;
  }

  #sink(): void {
    for (let at = 0, child = 1; child < this.#heap.length; child = 2 * at + 1) {
      const right = child + 1;
      if (
        right < this.#heap.length &&
        isBefore(this.#heap[right] as Timer, this.#heap[child] as Timer)
      )
        child = right;
      if (!this.#swapIf(child, at)) return;
      at = child;
    }
  }

  /** Swaps a timer with its parent if it is earlier. Returns whether it was. */
  #swapIf(child: number, parent: number): boolean {
    const [a, b] = [this.#heap[child] as Timer, this.#heap[parent] as Timer];
    if (!isBefore(a, b)) return false;
    this.#heap[child] = b;
    this.#heap[parent] = a;
    return true;
  }
}

function isBefore(a: Timer, b: Timer): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
