/** Submissions from which is known whether the upstream stores data as it received them. */
const MAX_COMPARED = 10;

/**
 * Whether a hash that was computed from submitted data says something about the upstream. One that
 * encrypts reports hashes of other bytes, and its responses do not show that.
 */
export class ComputedHashes {
  /** Whether each of the newest hashes was equal to that of the upstream, by submission. */
  readonly #compared = new Map<string, boolean>();

  /**
   * Adds a comparison. Returns whether it is conclusive: the hashes are equal, or most of the
   * newest ones of other submissions were.
   */
  isConclusive(submissionId: string, isEqual: boolean): boolean {
    this.#compared.delete(submissionId);
    const others = [...this.#compared.values()];
    const equal = others.filter(Boolean).length;
    this.#compared.set(submissionId, isEqual);
    const [oldest] = this.#compared.keys();
    if (this.#compared.size > MAX_COMPARED && oldest !== undefined) this.#compared.delete(oldest);
    return isEqual || equal > others.length - equal;
  }
}
