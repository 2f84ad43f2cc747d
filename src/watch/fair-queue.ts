/** Items that wait, each of one client: clients take turns, and the items of one come in the order in which they were added. */
export class FairQueue<Item> {
  /** In the order of their next turns; none of them is empty. */
  readonly #lines = new Map<string, Set<Item>>();
  #size = 0;

  /** How many clients have an item that waits. */
  get clients(): number {
    return this.#lines.size;
  }

  /** Items of all clients; one that waits for several counts for each. */
  get size(): number {
    return this.#size;
  }

  sizeOf(client: string): number {
    return this.#lines.get(client)?.size ?? 0;
  }

  /** An item waits once for each client, however often it is added. */
  add(client: string, item: Item): void {
    const line = this.#lines.get(client) ?? new Set();
    if (line.has(item)) return;
    this.#lines.set(client, line.add(item));
    this.#size += 1;
  }

  /** The item whose turn is next. */
  peek(): Item | undefined {
    for (const line of this.#lines.values()) for (const item of line) return item;
    return undefined;
  }

  /** Takes the item whose turn is next; its client has its next turn after all others. */
  shift(): Item | undefined {
    for (const [client, line] of this.#lines)
      for (const item of line) {
        line.delete(item);
        this.#size -= 1;
        this.#lines.delete(client);
        if (line.size > 0) this.#lines.set(client, line);
        return item;
      }
    return undefined;
  }

  /** The turn of its client stays. */
  delete(client: string, item: Item): void {
    const line = this.#lines.get(client);
    if (line?.delete(item)) this.#size -= 1;
    if (line?.size === 0) this.#lines.delete(client);
  }
}

/**
 * Whether a client may take so much more of what is limited for all. While there is room everybody may; without any, those
 * below an equal share still may, so that one client cannot keep the others out. `clients`: how many have some, this one included.
 */
export function isWithinFairShare(
  more: number,
  { own, all, limit, clients }: { own: number; all: number; limit: number; clients: number },
) {
  return all + more <= limit || own + more <= limit / clients;
}
