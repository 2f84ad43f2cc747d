import type { FinalityEvent } from './policy/slot-clock.ts';

/** Number of blocks whose groups are stored. */
const MAX_BLOCKS = 512;
/** The upstream updates all rows of a block within seconds. A later finality is of another block with the same number. */
const MAX_GROUP_MS = 60_000;

/** `foundAt`: when the first member was found final, epoch ms. `members`: number of members found final so far. */
export type Group = FinalityEvent & { after: number; by: number; readonly foundAt: number; members: number };

/** Groups submissions that became final together: with the same block or, without block numbers, at about the same time. */
export class FinalityGroups {
  readonly #blocks = new Map<number, Group>();
  #newest: Group | null = null;

  /**
   * Returns the group of a submission that became final in the given interval; null if it begins a group. Without a block
   * number, the newest group matches for `togetherMs` after its first member was found.
   */
  find(block: number | null, { after, by }: FinalityEvent, togetherMs: number): Group | null {
    if (block === null) return this.#newest && by - this.#newest.foundAt <= togetherMs ? this.#newest : null;
    const group = this.#blocks.get(block);
    if (!group || after <= group.foundAt + MAX_GROUP_MS) return group ?? null;
    // The submission was open long after this block was final, so the chain has restarted its block numbers.
    this.#blocks.clear();
    return null;
  }

  /** Adds a group with one member. */
  begin(block: number | null, { after, by }: FinalityEvent): Group {
    const group = { after, by, foundAt: by, members: 1 };
    this.#newest = group;
    if (block === null) return group;
    this.#blocks.set(block, group);
    const [oldest] = this.#blocks.keys();
    if (this.#blocks.size > MAX_BLOCKS && oldest !== undefined) this.#blocks.delete(oldest);
    return group;
  }

  /** Adds a member, whose interval narrows the interval in which the group became final. */
  addMember(group: Group, { after, by }: FinalityEvent): void {
    group.members++;
    group.by = Math.min(group.by, by);
    if (after < group.by) group.after = Math.max(group.after, after);
  }
}
