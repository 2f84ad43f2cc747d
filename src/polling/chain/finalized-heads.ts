import type { ChainHead, NodeStatus } from './port.ts';

/** A block announced as final. `block`: what tells it from others of its number, if known. */
type Announcement = { number: number; block?: string | undefined };
/** Why a node is not trusted. */
type Distrust = { state: NodeStatus['state']; reason: string };

/** Announcements of each node that are kept: about six hours of a chain with slots of 20 s. */
const MAX_KEPT = 1_024;
/** Nodes within this time agree. Shorter than a slot of 20 s, by which an early node differs. */
const BEHIND_MS = 15_000;
/** After a reconnection, a head that is lower by more blocks refutes those before it. */
const MAX_LOWER = 10;
/** Announcements in which the newest common block of all nodes is searched. */
const MAX_COMPARED = 32;

type Kept = Announcement & { at: number; isExact: boolean };
type Node = {
  name: string;
  genesis: string | null;
  /** Whether a head has arrived since it was connected. */
  isConnected: boolean;
  /** In ascending order. `isExact`: the node was connected when the block became final. */
  kept: Kept[];
  /** Its newest block was not above its newest final one, when it was asked. */
  callsBestFinal: boolean;
};

/**
 * The finalized blocks that the nodes of a chain announce, compared with one another. The first
 * announcement of a number by a trusted node counts. A node is not trusted if it
 *
 *     belongs to another chain    its block 0 is not the stored one, or that of most nodes
 *     is early                    most others announced its blocks 15 s later, and there are
 *                                 at least two of them, or it calls its newest block final
 *     is behind                   most others announced its blocks 15 s before
 *     has another block           than most nodes, at the newest number that all announced
 *
 * If two sides are equally many, that of the first node in the settings is right. Only the newest
 * announcements count, so trust returns by itself. Times are epoch milliseconds.
 */
export class FinalizedHeads {
  readonly #nodes: readonly Node[];
  #storedGenesis: string | null;
  #newest: ChainHead | null = null;

  /** `names`: in the order of the settings. */
  constructor(names: readonly string[], storedGenesis: string | null = null) {
    this.#nodes = names.map((name) => {
      return { name, genesis: null, isConnected: false, kept: [], callsBestFinal: false };
    });
    this.#storedGenesis = storedGenesis;
  }

  /** The highest block that a trusted node announced; null before the first. */
  get newest(): ChainHead | null {
    return this.#newest;
  }

  /** Hash of block 0 of the chain; null: not known. */
  get genesis(): string | null {
    return (
      this.#storedGenesis ?? mostCommon(this.#nodes.map(({ genesis }) => genesis ?? undefined))
    );
  }

  /** From now on, the current chain is the right one. Returns the hash of its block 0. */
  confirmGenesis(): string | null {
    this.#storedGenesis = this.genesis;
    return this.#storedGenesis;
  }

  headOf(name: string): ChainHead | null {
    return headOf(this.#node(name));
  }

  /** Begins with a new connection of a node. `genesis`: hash of its block 0. */
  connect(name: string, genesis: string | null = null): void {
    Object.assign(this.#node(name), { genesis, isConnected: false, callsBestFinal: false });
  }

  disconnect(name: string): void {
    this.#node(name).isConnected = false;
  }

  /**
   * Notes an announcement. Returns the newest head if its number has changed: it is higher, or
   * lower because the trust in a node has ended.
   */
  observe(name: string, { number, block }: Announcement, at: number): ChainHead | null {
    const node = this.#node(name);
    // A node announces its newest final block at the beginning of each subscription.
    const isExact = node.isConnected;
    node.isConnected = true;
    const before = numberOf(node);
    if (!isExact && number < before - MAX_LOWER) node.kept = [];
    else if (number <= before && isExact) return null;
    if (number > numberOf(node)) node.kept.push({ number, block, at, isExact });
    if (node.kept.length > MAX_KEPT) node.kept.shift();
    return this.#update(at);
  }

  /** Whether others announce the blocks of a node later: its newest block tells who is right. */
  isAhead(name: string, now: number): boolean {
    const node = this.#node(name);
    return this.#nodes.some((other) => other.isConnected && isAhead(node, other, now));
  }

  /** Notes the newest block of a node, final or not. Returns like `observe`. */
  observeBest(name: string, number: number, now: number): ChainHead | null {
    const node = this.#node(name);
    node.callsBestFinal = number <= numberOf(node);
    return this.#update(now);
  }

  /** Returns when the first trusted node announced a block or a later one; null: not known. */
  finalizedAt(blockNumber: number, now: number): number | null {
    const distrusted = this.distrusted(now);
    const times = this.#nodes.flatMap(({ name, kept }) => {
      const index = kept.findIndex(({ number }) => number >= blockNumber);
      const found = kept[index];
      // Blocks up to the first one that is kept may have become final before it.
      return found?.isExact && index > 0 && !distrusted.has(name) ? found.at : [];
    });
    return times.length === 0 ? null : Math.min(...times);
  }

  /** Returns why nodes are not trusted, by their names. */
  distrusted(now: number): ReadonlyMap<string, Distrust> {
    const found = new Map<string, Distrust>();
    const { genesis } = this;
    for (const node of this.#nodes) {
      if (node.genesis === null || node.genesis === genesis) continue;
      const reason = `it belongs to another chain: its block 0 is ${node.genesis}, not ${genesis}`;
      found.set(node.name, { state: 'another_chain', reason });
    }
    const remaining = () =>
      this.#nodes.filter(({ name, isConnected }) => isConnected && !found.has(name));
    const connected = remaining();
    for (const node of connected) {
      const later = connected.filter((other) => isAhead(node, other, now));
      if (later.length * 2 < connected.length || !(later[1] || node.callsBestFinal)) continue;
      const reason = `it announces blocks as final long before ${later[0]?.name} does`;
      found.set(node.name, { state: 'early', reason });
    }
    const timely = remaining();
    for (const node of timely) {
      const [first, ...earlier] = timely.filter((other) => isAhead(other, node, now));
      if (!first || (1 + earlier.length) * 2 < timely.length) continue;
      const reason = `it announces blocks more than ${BEHIND_MS / 1_000} s after ${first.name}`;
      found.set(node.name, { state: 'behind', reason });
    }
    const { right, wrong } = compareBlocks(remaining());
    for (const { name } of wrong) {
      const reason = `its blocks are not those of ${right}`;
      found.set(name, { state: 'another_block', reason });
    }
    return found;
  }

  #update(now: number): ChainHead | null {
    const distrusted = this.distrusted(now);
    const heads = this.#nodes.flatMap((node) =>
      node.isConnected && !distrusted.has(node.name) ? (headOf(node) ?? []) : [],
    );
    const highest = heads.sort((a, b) => b.number - a.number || a.at - b.at)[0];
    if (!highest || highest.number === this.#newest?.number) return null;
    this.#newest = highest;
    return highest;
  }

  #node(name: string): Node {
    const node = this.#nodes.find((one) => one.name === name);
    if (!node) throw new Error(`no node is named ${name}`);
    return node;
  }
}

function headOf({ kept }: Node): ChainHead | null {
  const head = kept.at(-1);
  return head ? { number: head.number, at: head.at } : null;
}

function numberOf(node: Node): number {
  return node.kept.at(-1)?.number ?? -1;
}

/** Whether `other` announced its newest block long after `node`, or lacks an old one of `node`. */
function isAhead(node: Node, other: Node, now: number): boolean {
  const head = other.kept.at(-1);
  if (!head || node === other || numberOf(node) < head.number) return false;
  const below = node.kept.findLastIndex(({ number }) => number < head.number);
  const [same, next] = node.kept.slice(below + 1, below + 3);
  const missing = same?.number === head.number ? next : same;
  const isLate = head.isExact && same !== undefined && same.at <= head.at - BEHIND_MS;
  return isLate || (missing !== undefined && missing.at <= now - BEHIND_MS);
}

/** Compares the nodes at the newest number that all of them announced. */
function compareBlocks(nodes: readonly Node[]): {
  right?: string | undefined;
  wrong: readonly Node[];
} {
  const blockOf = ({ kept }: Node, number: number) =>
    kept.findLast((one) => one.number === number)?.block;
  const common = nodes[0]?.kept
    .slice(-MAX_COMPARED)
    .findLast(({ number }) => nodes.every((node) => blockOf(node, number) !== undefined));
  if (!common) return { wrong: [] };
  const { number } = common;
  const block = mostCommon(nodes.map((node) => blockOf(node, number)));
  const right = nodes.find((node) => blockOf(node, number) === block)?.name;
  return { right, wrong: nodes.filter((node) => blockOf(node, number) !== block) };
}

/** Returns the value that occurs most, the first of several; null: there is none. */
function mostCommon(values: readonly (string | undefined)[]): string | null {
  const counts = new Map<string, number>();
  for (const value of values)
    if (value !== undefined) counts.set(value, (counts.get(value) ?? 0) + 1);
  const [first] = [...counts].sort(([, a], [, b]) => b - a);
  return first?.[0] ?? null;
}
