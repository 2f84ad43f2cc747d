/** What happens later, earliest first; what was added first goes first among equal times, so runs repeat exactly. */
type Agenda<T> = {
  add(atMs: number, item: T): void;
  nextAt(): number | undefined;
  /** Takes out the earliest entry that is due at nowMs. */
  takeDue(nowMs: number): Entry<T> | undefined;
};

type Entry<T> = { atMs: number; order: number; item: T };

export function createAgenda<T>(): Agenda<T> {
  const heap: Entry<T>[] = [];
  let added = 0;

  return {
    add(atMs, item) {
      added += 1;
      siftUp(heap, { atMs, order: added, item });
    },
    nextAt: () => heap[0]?.atMs,
    takeDue(nowMs) {
      const first = heap[0];
      if (first === undefined || first.atMs > nowMs) return undefined;
      const last = heap.pop();
      if (last !== undefined && last !== first) siftDown(heap, last);
      return first;
    },
  };
}

function isEarlier<T>(a: Entry<T>, b: Entry<T>): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

function siftUp<T>(heap: Entry<T>[], entry: Entry<T>): void {
  let index = heap.length;
  while (index > 0) {
    const parentIndex = (index - 1) >> 1;
    const parent = heap[parentIndex];
    if (parent === undefined || !isEarlier(entry, parent)) break;
    heap[index] = parent;
    index = parentIndex;
  }
  heap[index] = entry;
}

function siftDown<T>(heap: Entry<T>[], entry: Entry<T>): void {
  let index = 0;
  for (;;) {
    let childIndex = 2 * index + 1;
    let child = heap[childIndex];
    const right = heap[childIndex + 1];
    if (child !== undefined && right !== undefined && isEarlier(right, child)) {
      child = right;
      childIndex += 1;
    }
    if (child === undefined || !isEarlier(child, entry)) break;
    heap[index] = child;
    index = childIndex;
  }
  heap[index] = entry;
}
