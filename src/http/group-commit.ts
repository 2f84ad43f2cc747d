import { LedgerUnavailableError } from '../monitor/ports.ts';

/** One that waits for the commit that it is in. */
export type Member<Item, Outcome> = {
  item: Item;
  resolve: (outcome: Outcome) => void;
  reject: (error: unknown) => void;
};

/** Takes all of them in one commit, each for itself; what it throws, it took none of. */
export type Commit<Item, Outcome> = (items: readonly Item[]) => Outcome[];

/** What is asked for before the next tick, as by requests that are served together, shares a commit: that costs more than what is in it. */
export class GroupCommit<Item, Outcome> {
  readonly #commit: Commit<Item, Outcome>;
  #group: Member<Item, Outcome>[] = [];

  constructor(commit: Commit<Item, Outcome>) {
    this.#commit = commit;
  }

  /** Resolves once it is committed. */
  take(item: Item): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#group.push({ item, resolve, reject });
      if (this.#group.length === 1) process.nextTick(() => commitGroup(this.#group.splice(0), this.#commit));
    });
  }
}

export function commitGroup<Item, Outcome>(
  group: readonly Member<Item, Outcome>[],
  commit: Commit<Item, Outcome>,
): void {
  let outcomes: Outcome[];
  try {
    outcomes = commit(group.map(({ item }) => item));
  } catch (error) {
    // One by one, so that one that can't be kept doesn't take its neighbours with it. That the ledger can't be written is
    // the fault of none of them, and each try may take as long.
    if (group.length > 1 && !(error instanceof LedgerUnavailableError))
      for (const one of group) commitGroup([one], commit);
    else for (const { reject } of group) reject(error);
    return;
  }
  for (const [index, { resolve }] of group.entries()) resolve(outcomes[index] as Outcome);
}
