import type { Entry } from './entry.ts';

/**
 * The submissions that the upstream has returned and does not find any more. Such a response is a
 * failure of the upstream, unless the upstream has sent a good response since the first of them:
 * then only this submission is lost, and its responses have no meaning for the others. A submission
 * that the upstream returns again is no longer lost.
 */
export class LostSubmissions {
  /** With the number of good responses before the first "not found". */
  readonly #missing = new Map<Entry, number>();
  readonly #lost = new Set<Entry>();

  get size(): number {
    return this.#lost.size;
  }

  /**
   * Records that the upstream did not find a submission. Returns whether it is lost.
   * `goodResponses`: of the upstream so far.
   */
  add(entry: Entry, goodResponses: number): boolean {
    const before = this.#missing.get(entry);
    if (before === undefined) this.#missing.set(entry, goodResponses);
    else if (before < goodResponses) this.#lost.add(entry);
    return this.#lost.has(entry);
  }

  remove(entry: Entry): void {
    this.#missing.delete(entry);
    this.#lost.delete(entry);
  }
}
