import { LedgerUnavailableError } from '../../watch/ports.ts';

/** An item that waits for its batch. */
export type BatchItem<Item, Result> = {
  item: Item;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
};

/** Processes items in one transaction and returns their results in order; throws if none was processed. */
export type BatchFunction<Item, Result> = (items: readonly Item[]) => Result[];

/**
 * Collects items until the next tick and processes them in one transaction of the ledger. Requests coalesced by coalescing.ts
 * thereby share it, which saves a seventh of the CPU of a status read (row status-reads).
 */
export class RequestBatcher<Item, Result> {
  readonly #batch: BatchFunction<Item, Result>;
  readonly #concernsAll: (error: unknown) => boolean;
  #items: BatchItem<Item, Result>[] = [];

  /** `concernsAll`: whether an error would occur for each item alone, too. */
  constructor(batch: BatchFunction<Item, Result>, concernsAll: (error: unknown) => boolean = isUnavailable) {
    this.#batch = batch;
    this.#concernsAll = concernsAll;
  }

  /** Resolves with the result of the item, after its batch is committed. */
  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#items.push({ item, resolve, reject });
      if (this.#items.length === 1) process.nextTick(() => this.flush());
    });
  }

  /** Processes waiting items at once. */
  flush(): void {
    const group = this.#items.splice(0);
    if (group.length > 0) runBatch(group, this.#batch, this.#concernsAll);
  }
}

export function runBatch<Item, Result>(
  group: readonly BatchItem<Item, Result>[],
  batch: BatchFunction<Item, Result>,
  concernsAll: (error: unknown) => boolean = isUnavailable,
): void {
  let results: Result[];
  try {
    results = batch(group.map(({ item }) => item));
  } catch (error) {
    // Each item is repeated alone, so that one failing item does not fail the others.
    if (group.length > 1 && !concernsAll(error)) for (const one of group) runBatch([one], batch);
    else for (const { reject } of group) reject(error);
    return;
  }
  for (const [index, { resolve }] of group.entries()) resolve(results[index] as Result);
}

/** An unavailable ledger fails every item, and repeating each could take as long again. */
function isUnavailable(error: unknown): boolean {
  return error instanceof LedgerUnavailableError;
}
