import type { Candidate } from './policy.ts';

/** Open submissions in the order in which they were tracked, which is nearly the one in which they become final. */
export class WaitingLine {
  #head: Candidate | null = null;
  #tail: Candidate | null = null;
  #orders = 0;
  size = 0;

  get head(): Candidate | null {
    return this.#head;
  }

  append(item: Candidate): void {
    item.order = ++this.#orders;
    item.before = this.#tail;
    item.after = null;
    if (this.#tail) this.#tail.after = item;
    else this.#head = item;
    this.#tail = item;
    this.size++;
  }

  remove(item: Candidate): void {
    if (item.before) item.before.after = item.after;
    else this.#head = item.after;
    if (item.after) item.after.before = item.before;
    else this.#tail = item.before;
    item.before = null;
    item.after = null;
    item.order = 0;
    this.size--;
  }
}
