/** A queue of items by client. Clients take turns; the items of one client keep their order. */
export class FairQueue<Item> {
  /** Non-empty queues by client, in the order of their next turns. */
  readonly #queues = new Map<string, Set<Item>>();
  #size = 0;

  /** Number of clients with a waiting item. */
  get clients(): number {
    return this.#queues.size;
  }

  /** Number of items; an item that waits for several clients counts for each. */
  get size(): number {
    return this.#size;
  }

  sizeOf(client: string): number {
    return this.#queues.get(client)?.size ?? 0;
  }

  /** Adds an item, unless it waits for this client already. */
  add(client: string, item: Item): void {
    const queue = this.#queues.get(client) ?? new Set();
    if (queue.has(item)) return;
    this.#queues.set(client, queue.add(item));
    this.#size += 1;
  }

  /**
   * Returns the next item. `isWanted`: clients whose next item is another one are skipped, and keep
   * their turns.
   */
  peek(isWanted?: (item: Item) => boolean): Item | undefined {
    return this.#next(isWanted)?.item;
  }

  /**
   * Removes and returns the item that `peek` returns. Its client has its next turn after all
   * others.
   */
  shift(isWanted?: (item: Item) => boolean): Item | undefined {
    const next = this.#next(isWanted);
    if (!next) return undefined;
    const { client, queue, item } = next;
    queue.delete(item);
    this.#size -= 1;
    this.#queues.delete(client);
    if (queue.size > 0) this.#queues.set(client, queue);
    return item;
  }

  #next(isWanted: (item: Item) => boolean = () => true) {
    for (const [client, queue] of this.#queues) {
      const [item] = queue;
      if (item !== undefined && isWanted(item)) return { client, queue, item };
    }
    return undefined;
  }

  /**
   * Gives the turn of the next item's client to the others. The item stays the client's next one.
   */
  pass(): void {
    for (const [client, queue] of this.#queues) {
      this.#queues.delete(client);
      this.#queues.set(client, queue);
      return;
    }
  }

  /** Removes an item without using its client's turn. */
  delete(client: string, item: Item): void {
    const queue = this.#queues.get(client);
    if (queue?.delete(item)) this.#size -= 1;
    if (queue?.size === 0) this.#queues.delete(client);
  }
}

/**
 * Returns whether a client that has `own` of the `all` used units may take `more`. Below `limit`
 * every client may; above it, only clients below an equal share, so that one client cannot block
 * the others. `clients` counts this client too.
 */
export function isWithinFairShare(
  more: number,
  { own, all, limit, clients }: { own: number; all: number; limit: number; clients: number },
) {
  return all + more <= limit || own + more <= limit / clients;
}
