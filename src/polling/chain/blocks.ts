import { blake2b } from '@noble/hashes/blake2.js';
import { hashPair } from '../../client/proof.ts';
import type { Clock } from '../../lib/clock.ts';
import { isObject } from '../../lib/json.ts';
import type { ProvenBlock } from '../../submissions/submission.ts';
import {
  type DataTree,
  type Extrinsic,
  LAYOUTS,
  readExtrinsics,
  rootOf,
  toHex,
  treeOf,
} from './data-root.ts';
import { encodeHeader } from './header.ts';
import { blockNumberOf } from './node.ts';
import { type Chain, ChainError } from './port.ts';

/** Proven blocks that are kept; the submissions of a block are found final within seconds. */
const MAX_PROVEN = 16;
/** All blocks that are kept: two answers about each submission of some rounds. */
const MAX_BLOCKS = 200;
/** A block that proves nothing is fetched again after this time. */
const FETCH_AGAIN_MS = 600_000;
const NO_BRIDGE = new Uint8Array(32);

/** `block` null: none of its transactions submits data. */
type ProvenData = { block: ProvenBlock | null; data: DataTree['data'] };
const NO_DATA: ProvenData = { block: null, data: new Map() };

export type ReadBlock = {
  node: string;
  /** BLAKE2b-256 of its transactions, in their order; null: the node does not serve them. */
  hashes: readonly string[] | null;
  /** A text: why its data cannot be proved. */
  proof: ProvenData | string;
};

type Body = { hash: string; header: unknown; extrinsics: readonly Extrinsic[] };
/** `forgetAt`: a round that begins then fetches the block again, epoch milliseconds. */
type Kept = { hash: string; block: Promise<ReadBlock>; forgetAt: number };

/** Fetches blocks once, and keeps hashes only. One block at a time: each may take tens of MiB. */
export class Blocks {
  readonly #chain: Chain;
  readonly #clock: Clock;
  readonly #kept = new Map<string, Kept>();
  /** Keys of proven blocks, oldest first. */
  readonly #proven: string[] = [];
  #previous: Promise<unknown> = Promise.resolve();

  constructor(chain: Chain, clock: Clock) {
    this.#chain = chain;
    this.#clock = clock;
  }

  /** `except`: a node that is not asked if there is another one. Rejects with ChainError. */
  of(number: number, hash: string, except?: string): Promise<ReadBlock> {
    const key = `${hash} ${except}`;
    const existing = this.#kept.get(key);
    if (existing) return existing.block;
    const block = this.#read(number, hash, except);
    const kept: Kept = { hash, block, forgetAt: Number.POSITIVE_INFINITY };
    block.then(
      ({ hashes, proof }) => {
        if (hashes === null) kept.forgetAt = 0;
        else if (typeof proof === 'string') kept.forgetAt = this.#clock.now() + FETCH_AGAIN_MS;
        else if (this.#proven.push(key) > MAX_PROVEN) this.#kept.delete(this.#proven.shift() ?? '');
      },
      () => {
        kept.forgetAt = 0;
      },
    );
    this.#kept.set(key, kept);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MAX_BLOCKS && oldest !== undefined) this.#kept.delete(oldest);
    return block;
  }

  /** A node may have a block now that it lacked. */
  beginRound(): void {
    const now = this.#clock.now();
    for (const [key, { forgetAt }] of this.#kept) if (forgetAt <= now) this.#kept.delete(key);
  }

  /** Fetches a block again in the next round: its transactions were not those of the upstream. */
  doubt(hash: string): void {
    for (const kept of this.#kept.values()) if (kept.hash === hash) kept.forgetAt = 0;
  }

  async #read(number: number, hash: string, except?: string): Promise<ReadBlock> {
    const fetched = this.#previous.then(() => this.#fetch(number, hash, except));
    this.#previous = fetched.catch(() => undefined);
    const { node, header, extrinsics } = await fetched;
    if (extrinsics === null) return { node, hashes: null, proof: '' };
    const proof = await this.#prove(`block ${number}`, { hash, header, extrinsics }, except);
    return { node, hashes: extrinsics.map((one) => one.hash), proof };
  }

  async #fetch(number: number, hash: string, except?: string) {
    const { node, result } = await this.#chain.call<unknown>('chain_getBlock', [hash], except);
    const block = isObject(result) ? result.block : null;
    const { header, extrinsics: json } = isObject(block) ? block : {};
    // Some nodes respond with block 0 if they do not have the block.
    const isBlock = Buffer.isBuffer(json) && blockNumberOf(header) === number;
    return { node, header, extrinsics: isBlock ? await readExtrinsics(json) : null };
  }

  /** Reproduces the data root of the header. Returns why that fails. */
  async #prove(
    name: string,
    { hash, header, extrinsics }: Body,
    except?: string,
  ): Promise<ProvenData | string> {
    const encoded = encodeHeader(header);
    if (encoded === null) return `the header of ${name} has no V3 extension`;
    if (toHex(blake2b(encoded, { dkLen: 32 })) !== hash)
      return `the node sends another header for ${name}`;
    const dataRoot = toHex(encoded.subarray(-32));
    const trees = LAYOUTS.map((layout) => treeOf(extrinsics, layout));
    const roots = trees.map(({ leaves }) => rootOf(leaves));
    const provenBy = (bridgeRoot: Uint8Array) => {
      const isRoot = (root: Uint8Array) => toHex(hashPair(root, bridgeRoot)) === dataRoot;
      const { data, leaves } = trees[roots.findIndex(isRoot)] ?? {};
      const proven = { hash, header: toHex(encoded), dataRoot, bridgeRoot: toHex(bridgeRoot) };
      return data && { block: { ...proven, leaves: Buffer.concat(leaves ?? []) }, data };
    };
    const [index] = trees.flatMap(({ data }) => [...data.keys()]);
    const proven = provenBy(NO_BRIDGE);
    if (proven || index === undefined) return proven ?? NO_DATA;
    const bridgeRoot = await this.#bridgeRoot(index, hash, except);
    if (bridgeRoot === null)
      return `${name} has more than submitted data, such as bridge messages, and no node offers kate_queryDataProof`;
    return provenBy(bridgeRoot) ?? `${name} has another data root than its direct submissions`;
  }

  /** Returns what proves the data of a block with bridge messages; null: no node tells it. */
  async #bridgeRoot(index: number, hash: string, except?: string): Promise<Uint8Array | null> {
    try {
      const params = [index, hash];
      const { result } = await this.#chain.call<unknown>('kate_queryDataProof', params, except);
      const { dataProof } = isObject(result) ? result : {};
      const { roots } = isObject(dataProof) ? dataProof : {};
      const { bridgeRoot } = isObject(roots) ? roots : {};
      return Buffer.from(String(bridgeRoot).slice(2), 'hex');
    } catch (error) {
      const isRefused =
        error instanceof ChainError && /^(?:method_not_found|refused)$/.test(error.reason);
      if (isRefused) return null;
      throw error;
    }
  }
}
