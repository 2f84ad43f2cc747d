import { isWithinFairShare } from '../lib/fair-queue.ts';

/** Counts the units of a limited resource that each client uses. */
export class Shares {
  readonly #used = new Map<string, number>();
  #total = 0;

  get total(): number {
    return this.#total;
  }

  /** A negative count frees units. */
  add(client: string, count: number): void {
    const own = (this.#used.get(client) ?? 0) + count;
    this.#total += count;
    if (own > 0) this.#used.set(client, own);
    else this.#used.delete(client);
  }

  /** Whether the client may use so many more units. See isWithinFairShare. */
  hasRoom(client: string, more: number, limit: number): boolean {
    const own = this.#used.get(client) ?? 0;
    const clients = this.#used.size + (own > 0 ? 0 : 1);
    return isWithinFairShare(more, { own, all: this.#total, limit, clients });
  }
}
