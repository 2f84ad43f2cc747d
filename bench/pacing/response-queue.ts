/** Responses in transit, ordered by arrival time (a binary heap). */
export class ResponseQueue<T> {
  readonly #heap: { at: number; item: T }[] = [];

  get nextAt(): number {
    return this.#heap[0]?.at ?? Number.POSITIVE_INFINITY;
  }

  add(at: number, item: T): void {
    const heap = this.#heap;
    let place = heap.push({ at, item }) - 1;
    for (;;) {
      const parent = (place - 1) >> 1;
      const [mine, above] = [heap[place], heap[parent]];
      if (place === 0 || !mine || !above || above.at <= mine.at) return;
      heap[place] = above;
      heap[parent] = mine;
      place = parent;
    }
  }

  take(): T {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (!first || !last) throw new Error('the queue is empty');
    if (heap.length > 0) {
      heap[0] = last;
      for (let place = 0; ; ) {
        const [left, right] = [heap[2 * place + 1], heap[2 * place + 2]];
        const child = right && left && right.at < left.at ? 2 * place + 2 : 2 * place + 1;
        const below = heap[child];
        if (!below || below.at >= last.at) break;
        heap[place] = below;
        heap[child] = last;
        place = child;
      }
    }
    return first.item;
  }
}
