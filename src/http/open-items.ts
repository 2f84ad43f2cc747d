/**
 * The items of the requests in progress, in no order. An item occupies a place until it is removed.
 *
 * A Map or Set of all requests in progress would cost a fifth of a status read (row status-reads): each growth of its table leaves
 * an old one behind, which keeps its requests from being collected as young objects.
 */
export class OpenItems<Item extends object> {
  readonly #places: (Item | undefined)[] = [];
  readonly #free: number[] = [];

  /** Returns a function that removes the item; a second call does nothing. */
  add(item: Item): () => void {
    const place = this.#free.pop() ?? this.#places.length;
    this.#places[place] = item;
    return () => {
      if (this.#places[place] !== item) return;
      this.#places[place] = undefined;
      this.#free.push(place);
    };
  }

  /** Items may be removed while they are yielded. */
  *[Symbol.iterator](): Generator<Item, void> {
    for (const item of this.#places) if (item) yield item;
  }
}
