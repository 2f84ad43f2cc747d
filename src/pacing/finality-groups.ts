import type { FinalityEvent } from './policy/slot-clock.ts';

/** So many blocks are remembered. */
const MEMORY = 512;
/** Rows of one block are updated within seconds. */
const RESTARTED_MS = 60_000;

/** `foundAt`: when the first of the group was found final, epoch ms. `members`: how many have been since. */
export type Group = FinalityEvent & { after: number; by: number; readonly foundAt: number; members: number };

/** Submissions that became final together: with the same block, or, where no block is named, at about the same time. */
export class FinalityGroups {
  readonly #blocks = new Map<number, Group>();
  #newest: Group | null = null;

  /** The group of one that became final in the interval given; without a block, that of `togetherMs` before. */
  find(block: number | null, { after, by }: FinalityEvent, togetherMs: number): Group | null {
    if (block === null) return this.#newest && by - this.#newest.foundAt <= togetherMs ? this.#newest : null;
    const group = this.#blocks.get(block);
    if (!group || after <= group.foundAt + RESTARTED_MS) return group ?? null;
    // It was open long after its block was final: the chain has started again, with the same numbers.
    this.#blocks.clear();
    return null;
  }

  begin(block: number | null, { after, by }: FinalityEvent): Group {
    const group = { after, by, foundAt: by, members: 1 };
    this.#newest = group;
    if (block === null) return group;
    this.#blocks.set(block, group);
    const [oldest] = this.#blocks.keys();
    if (this.#blocks.size > MEMORY && oldest !== undefined) this.#blocks.delete(oldest);
    return group;
  }

  /** Each member bounds the moment at which the group became final. */
  addMember(group: Group, { after, by }: FinalityEvent): void {
    group.members++;
    group.by = Math.min(group.by, by);
    if (after < group.by) group.after = Math.max(group.after, after);
  }
}
