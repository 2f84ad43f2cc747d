/** The credentials, by hash, that each address has used successfully. Holds at most `max` pairs, evicting the oldest use. */
export class UsedCredentials {
  readonly #max: number;
  readonly #pairs = new Set<string>();

  constructor(max: number) {
    this.#max = max;
  }

  has(address: string, hash: Buffer): boolean {
    return this.#pairs.has(pairOf(address, hash));
  }

  add(address: string, hash: Buffer): void {
    const pair = pairOf(address, hash);
    this.#pairs.delete(pair);
    this.#pairs.add(pair);
    if (this.#pairs.size <= this.#max) return;
    const [oldest] = this.#pairs;
    if (oldest !== undefined) this.#pairs.delete(oldest);
  }

  remove(address: string, hash: Buffer): void {
    this.#pairs.delete(pairOf(address, hash));
  }
}

function pairOf(address: string, hash: Buffer): string {
  return `${address} ${hash.toString('base64')}`;
}
