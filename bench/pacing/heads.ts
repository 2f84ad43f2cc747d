import type { FinalizedHead } from '../../src/pacing/index.ts';
import { FinalizedHeads } from '../../src/polling/chain/finalized-heads.ts';
import type { Head } from '../../src/sandbox/chain/chain.ts';
import { createModel } from '../../src/sandbox/model.ts';
import { sandboxOptionsSchema } from '../../src/sandbox/options.ts';
import { seededRandom } from '../support/random.ts';
import type { Chain } from './sandbox-world.ts';
import { CHAIN_START_MS, type ReportedHead, START_MS } from './simulate.ts';

/** How a node differs from one that announces each block 50 to 300 ms after it is final. */
type Node = {
  /** More seconds until each announcement. */
  lateS?: number;
  /** Announces blocks as final when they are produced. */
  isEarly?: boolean;
  /** Announces nothing from this many seconds after the start on. */
  silentFromS?: number;
  /** Announces nothing until a block becomes final after the first submission. */
  isSilentAtFirst?: boolean;
};

const FAULTY = {
  '2 s late': { lateS: 2 },
  '5 s late': { lateS: 5 },
  '10 s late': { lateS: 10 },
  early: { isEarly: true },
  'silent from minute five on': { silentFromS: 300 },
} satisfies Record<string, Node>;
export type FaultyNode = keyof typeof FAULTY;
export const FAULTY_NODES = Object.keys(FAULTY) as FaultyNode[];

/** The nodes of a run, by name. */
export const NODES = {
  none: [],
  healthy: [{}],
  'silent at first': [{ isSilentAtFirst: true }],
  ...(Object.fromEntries(Object.entries(FAULTY).map(([name, node]) => [name, [node]])) as Record<
    FaultyNode,
    Node[]
  >),
  ...(Object.fromEntries(
    Object.entries(FAULTY).map(([name, node]) => [`${name} + healthy`, [node, {}]]),
  ) as Record<`${FaultyNode} + healthy`, Node[]>),
} satisfies Record<string, Node[]>;
export type NodesName = keyof typeof NODES;

/** From the finality of a block to the arrival of its announcement: vote, gossip and network. */
const ANNOUNCED_MS = { least: 50, most: 300 };

/**
 * Returns the heads that the client of some nodes reports, in order. When the run starts, each node
 * announces its newest one.
 */
export function headsOf(
  chain: Chain,
  nodes: readonly Node[],
  { seed, firstMs, untilMs }: { seed: number; firstMs: number; untilMs: number },
): ReportedHead[] {
  if (nodes.length === 0) return [];
  const blocks = finalBlocks(chain, untilMs);
  const heads = new FinalizedHeads(nodes.map((_, index) => String(index)));
  return nodes
    .flatMap((node, index) => {
      const announced = announcementsOf(node, blocks, seededRandom(1_000 * (index + 1) + seed));
      return withStart(node, announced, firstMs).map((head) => ({
        ...head,
        node,
        name: String(index),
      }));
    })
    .sort((a, b) => a.at - b.at || a.number - b.number)
    .flatMap(({ node, name, number, at }) => {
      const reported = [heads.observe(name, { number }, at)];
      if (heads.isAhead(name, at)) {
        const best = blocks.findLast(({ producedMs }) => producedMs <= at)?.number ?? number;
        reported.push(heads.observeBest(name, node.isEarly ? number : best, at));
      }
      return reported.flatMap((head) => (head ? { head, at } : []));
    })
    .filter(({ at }, index, reported) => at !== reported[index + 1]?.at);
}

function announcementsOf(
  node: Node,
  blocks: readonly Head[],
  random: () => number,
): FinalizedHead[] {
  let eventMs = 0;
  let announcedAt = 0;
  return blocks.map(({ number, producedMs, finalMs }) => {
    const ms = node.isEarly ? producedMs : finalMs;
    // The heads of blocks that become final together arrive together.
    if (ms !== eventMs) {
      const latencyMs = ANNOUNCED_MS.least + (ANNOUNCED_MS.most - ANNOUNCED_MS.least) * random();
      announcedAt = Math.max(announcedAt, ms + latencyMs + 1_000 * (node.lateS ?? 0));
    }
    eventMs = ms;
    return { number, at: announcedAt };
  });
}

/** Returns what the node announces from the start of the run on. */
function withStart(node: Node, heads: FinalizedHead[], firstMs: number): FinalizedHead[] {
  if (node.isSilentAtFirst) return heads.filter(({ at }) => at > firstMs);
  const endMs = START_MS + 1_000 * (node.silentFromS ?? Number.POSITIVE_INFINITY);
  const newest = heads.findLastIndex(({ at }) => at <= START_MS);
  return heads
    .slice(Math.max(0, newest))
    .map(({ number, at }) => ({ number, at: Math.max(START_MS, at) }))
    .filter(({ at }) => at <= endMs);
}

/** Returns the blocks of the chain that are final at a time, oldest first. */
function finalBlocks({ options, gapChange }: Chain, untilMs: number): Head[] {
  const model = createModel(sandboxOptionsSchema.parse(options));
  const blocks: Head[] = [];
  let pendingChange = gapChange;
  for (let reachedMs = CHAIN_START_MS; reachedMs < untilMs; ) {
    const nextMs = model.nextHeadAt(reachedMs);
    if (pendingChange && nextMs > pendingChange.atMs) {
      model.setFinalityGap(pendingChange.blocks, pendingChange.atMs);
      reachedMs = pendingChange.atMs;
      pendingChange = undefined;
    } else {
      blocks.push(...model.heads(blocks.at(-1)?.number ?? 0, nextMs));
      reachedMs = nextMs;
    }
  }
  return blocks;
}
