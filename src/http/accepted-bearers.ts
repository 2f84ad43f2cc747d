/** The bearers that the upstream took last, by hash only. Past `max` the one unused for longest is forgotten. */
export class AcceptedBearers {
  readonly #max: number;
  readonly #hashes = new Set<string>();

  constructor(max: number) {
    this.#max = max;
  }

  has(hash: Buffer): boolean {
    return this.#hashes.has(hash.toString('hex'));
  }

  add(hash: Buffer): void {
    this.forget(hash);
    this.#hashes.add(hash.toString('hex'));
    const [oldest] = this.#hashes;
    if (this.#hashes.size > this.#max && oldest !== undefined) this.#hashes.delete(oldest);
  }

  forget(hash: Buffer): void {
    this.#hashes.delete(hash.toString('hex'));
  }
}
