import type { Candidate } from '../policy.ts';

/** Submissions that wait, in the order of tracking, each with its number in that order (from 1). */
export class Line {
  #items: (Candidate | undefined)[] = [];
  /** Order of the first place in `#items`. */
  #base = 1;
  #first = 1;
  size = 0;

  get end(): number {
    return this.#base + this.#items.length;
  }

  get begin(): number {
    return this.#base;
  }

  /** The first one that is left. */
  first(): Candidate | undefined {
    this.#first = Math.max(this.#first, this.#base);
    while (this.#first < this.end && !this.get(this.#first)) this.#first++;
    this.trim(this.#first);
    return this.get(this.#first);
  }

  append(item: Candidate): number {
    this.size++;
    item.order = this.end;
    this.#items.push(item);
    return item.order;
  }

  get(order: number): Candidate | undefined {
    return this.#items[order - this.#base];
  }

  remove(item: Candidate): void {
    this.#items[item.order - this.#base] = undefined;
    item.order = 0;
    this.size--;
  }

  /** Lets go of the places before `order`. */
  trim(order: number): void {
    const count = order - this.#base;
    if (count <= 0 || (count < 1024 && count * 2 < this.#items.length)) return;
    this.#items = this.#items.slice(count);
    this.#base += count;
  }
}
