/** `dueAt`: epoch ms. `heapIndex`: maintained by DueQueue, to remove an entry in O(log n). */
export type Due = { dueAt: number; heapIndex: number };

export class DueQueue<Entry extends Due> {
  readonly #heap: Entry[] = [];

  get earliest(): Entry | undefined {
    return this.#heap[0];
  }

  get size(): number {
    return this.#heap.length;
  }

  has(entry: Entry): boolean {
    return this.#heap[entry.heapIndex] === entry;
  }

  add(entry: Entry): void {
    this.#put(entry, this.#heap.length);
    this.#rise(entry);
  }

  remove(entry: Entry): void {
    const last = this.#heap.pop();
    if (!last || last === entry) return;
    this.#put(last, entry.heapIndex);
    this.#rise(last);
    this.#sink(last);
  }

  #rise(entry: Entry): void {
    while (entry.heapIndex > 0) {
      const parent = this.#heap[(entry.heapIndex - 1) >> 1];
      if (!parent || parent.dueAt <= entry.dueAt) return;
      this.#swap(entry, parent);
    }
  }

  #sink(entry: Entry): void {
    for (;;) {
      const left = this.#heap[2 * entry.heapIndex + 1];
      const right = this.#heap[2 * entry.heapIndex + 2];
      const child = left && right && right.dueAt < left.dueAt ? right : left;
      if (!child || child.dueAt >= entry.dueAt) return;
      this.#swap(entry, child);
    }
  }

  #swap(a: Entry, b: Entry): void {
    const index = a.heapIndex;
    this.#put(a, b.heapIndex);
    this.#put(b, index);
  }

  #put(entry: Entry, index: number): void {
    this.#heap[index] = entry;
    entry.heapIndex = index;
  }
}
