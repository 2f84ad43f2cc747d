import { LedgerUnavailableError } from '../../watch/ports.ts';

/** One that waits for the batch that it is in. */
export type BatchItem<Item, Outcome> = {
  item: Item;
  resolve: (outcome: Outcome) => void;
  reject: (error: unknown) => void;
};

/** Does all of them in one transaction, each for itself; when it throws, it did none of them. */
export type BatchFunction<Item, Outcome> = (items: readonly Item[]) => Outcome[];

/**
 * What is asked for before the next tick, as by requests that are served together, shares a transaction of the ledger: that costs
 * as much as what is in it, be it a commit or a read.
 */
export class RequestBatcher<Item, Outcome> {
  readonly #batch: BatchFunction<Item, Outcome>;
  readonly #isOfAll: (error: unknown) => boolean;
  #group: BatchItem<Item, Outcome>[] = [];

  /** `isOfAll`: whether what was thrown would be thrown for each of them alone too. */
  constructor(batch: BatchFunction<Item, Outcome>, isOfAll: (error: unknown) => boolean = isUnavailable) {
    this.#batch = batch;
    this.#isOfAll = isOfAll;
  }

  /** Resolves once it is done: what it wrote is on the disk. */
  add(item: Item): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#group.push({ item, resolve, reject });
      if (this.#group.length === 1) process.nextTick(() => this.flush());
    });
  }

  /** Does at once what waits. */
  flush(): void {
    const group = this.#group.splice(0);
    if (group.length > 0) runBatch(group, this.#batch, this.#isOfAll);
  }
}

export function runBatch<Item, Outcome>(
  group: readonly BatchItem<Item, Outcome>[],
  batch: BatchFunction<Item, Outcome>,
  isOfAll: (error: unknown) => boolean = isUnavailable,
): void {
  let outcomes: Outcome[];
  try {
    outcomes = batch(group.map(({ item }) => item));
  } catch (error) {
    // One by one, so that one that can't be done doesn't take its neighbours with it.
    if (group.length > 1 && !isOfAll(error)) for (const one of group) runBatch([one], batch);
    else for (const { reject } of group) reject(error);
    return;
  }
  for (const [index, { resolve }] of group.entries()) resolve(outcomes[index] as Outcome);
}

/** That the ledger can't be written is the fault of none of them, and each try may take as long. */
function isUnavailable(error: unknown): boolean {
  return error instanceof LedgerUnavailableError;
}
