import type { FinalizedHead } from '../../src/pacing/index.ts';
import { createModel } from '../../src/sandbox/model.ts';
import { type SandboxOptionsInput, sandboxOptionsSchema } from '../../src/sandbox/options.ts';
import type { GapChange } from './sandbox-world.ts';

/** The finalized blocks that a node announces, in the order of their arrival. */
export type HeadSource = {
  /** When the next head arrives, epoch ms. */
  readonly nextAt: number;
  take(): FinalizedHead;
};

/** From the finality of a block to the arrival of its announcement: vote, gossip and network. */
const ANNOUNCED_MS = { least: 50, most: 300 };

/**
 * Returns the announcements of a node of the chain that `sandboxWorld` simulates with the same
 * options, if its first submission is made at `startMs`. As with a real node, the newest head
 * arrives first, and the heads of blocks that become final together arrive together.
 */
export function headsOf(
  given: SandboxOptionsInput,
  random: () => number,
  startMs: number,
  gapChange?: GapChange,
): HeadSource {
  // A second model, because reading this one ahead of the present must not advance the world.
  const model = createModel(sandboxOptionsSchema.parse(given));
  const pending: FinalizedHead[] = [];
  let pendingChange = gapChange;
  let [reachedMs, number, arrivedAt] = [startMs, 0, startMs];

  const announce = (finalMs: number, heads: readonly { number: number }[]) => {
    const latencyMs = ANNOUNCED_MS.least + (ANNOUNCED_MS.most - ANNOUNCED_MS.least) * random();
    arrivedAt = Math.max(arrivedAt, finalMs + latencyMs);
    for (const head of heads) pending.push({ number: head.number, at: arrivedAt });
  };
  const readAhead = () => {
    let nextMs = model.nextHeadAt(reachedMs);
    if (pendingChange && nextMs > pendingChange.atMs) {
      model.setFinalityGap(pendingChange.blocks, pendingChange.atMs);
      reachedMs = pendingChange.atMs;
      pendingChange = undefined;
      nextMs = model.nextHeadAt(reachedMs);
    }
    const heads = model.heads(number, nextMs);
    if (number === 0) announce(startMs, [{ number: (heads[0]?.number ?? 1) - 1 }]);
    announce(nextMs, heads);
    number = heads.at(-1)?.number ?? number;
    reachedMs = nextMs;
  };

  readAhead();
  return {
    get nextAt() {
      return (pending[0] as FinalizedHead).at;
    },
    take() {
      const head = pending.shift() as FinalizedHead;
      if (pending.length === 0) readAhead();
      return head;
    },
  };
}
