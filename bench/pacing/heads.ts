import type { FinalizedHead } from '../../src/pacing/index.ts';
import type { Head } from '../../src/sandbox/chain/chain.ts';
import { createModel } from '../../src/sandbox/model.ts';
import { sandboxOptionsSchema } from '../../src/sandbox/options.ts';
import { seededRandom } from '../support/random.ts';
import type { Chain } from './sandbox-world.ts';
import { CHAIN_START_MS, START_MS } from './simulate.ts';

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
 * Returns the heads that some nodes announce, in the order of arrival: the newest one of each node
 * when the run starts, then the first announcement of each block.
 */
export function headsOf(
  chain: Chain,
  nodes: readonly Node[],
  { seed, firstMs, untilMs }: { seed: number; firstMs: number; untilMs: number },
): FinalizedHead[] {
  if (nodes.length === 0) return [];
  const blocks = finalBlocks(chain, untilMs);
  const announced = nodes
    .flatMap((node, index) => announcementsOf(node, blocks, seed + 1_000 * (index + 1), firstMs))
    .sort((a, b) => a.at - b.at || a.number - b.number);
  let newest = 0;
  return announced.filter(({ number }) => {
    const isNew = number > newest;
    if (isNew) newest = number;
    return isNew;
  });
}

function announcementsOf(
  node: Node,
  blocks: readonly Head[],
  seed: number,
  firstMs: number,
): FinalizedHead[] {
  const random = seededRandom(seed);
  const heads: FinalizedHead[] = [];
  let eventMs = 0;
  let at = 0;
  for (const { number, producedMs, finalMs } of blocks) {
    const ms = node.isEarly ? producedMs : finalMs;
    // The heads of blocks that become final together arrive together.
    if (ms !== eventMs) {
      const latencyMs = ANNOUNCED_MS.least + (ANNOUNCED_MS.most - ANNOUNCED_MS.least) * random();
      at = Math.max(at, ms + latencyMs + 1_000 * (node.lateS ?? 0));
    }
    eventMs = ms;
    heads.push({ number, at });
  }
  const newest = heads.findLastIndex((head) => head.at <= START_MS);
  const endMs = START_MS + 1_000 * (node.silentFromS ?? Number.POSITIVE_INFINITY);
  const beginMs = node.isSilentAtFirst ? firstMs : START_MS;
  return heads
    .slice(Math.max(0, newest))
    .map(({ number, at }) => ({ number, at: Math.max(START_MS, at) }))
    .filter(({ at }) => at <= endMs && (at > beginMs || !node.isSilentAtFirst));
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
