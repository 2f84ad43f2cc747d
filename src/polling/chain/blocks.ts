import { hashHeader, hashPair } from '../../client/proof.ts';
import { isObject } from '../../lib/json.ts';
import {
  type DataHashes,
  type Extrinsic,
  LAYOUTS,
  readExtrinsics,
  rootOf,
  toHex,
} from './data-root.ts';
import { blockNumberOf } from './node.ts';
import { type Chain, ChainError } from './port.ts';
import { nodeHeaderSchema } from './proof-body.ts';
import type { ProvenBlock } from './proof-store.ts';

/** Blocks that are kept; the submissions of a block are found final within seconds. */
const MAX_BLOCKS = 16;
const NO_BRIDGE = new Uint8Array(32);

/** `data`: of the transactions that submit some, by their index. */
export type DataTree = {
  block: ProvenBlock;
  data: ReadonlyMap<number, DataHashes & { leafIndex: number }>;
};

export type ReadBlock = {
  node: string;
  /** BLAKE2b-256 of its transactions, in their order; null: the node does not serve them. */
  hashes: readonly string[] | null;
  /** A text: why its data cannot be proved. */
  tree: DataTree | string;
};

type AskOptions = { except?: string };

/** Fetches blocks once, and keeps hashes only. One block at a time: each may take tens of MiB. */
export class Blocks {
  readonly #chain: Chain;
  readonly #proven = new Map<string, ReadBlock>();
  readonly #fetches = new Map<string, Promise<ReadBlock>>();
  #previous: Promise<unknown> = Promise.resolve();

  constructor(chain: Chain) {
    this.#chain = chain;
  }

  /** `except`: a node that is not asked if there is another one. Rejects with ChainError. */
  of(number: number, hash: string, options: AskOptions = {}): Promise<ReadBlock> {
    const proven = this.#provenBy(hash, options);
    if (proven) return Promise.resolve(proven);
    const key = `${hash} ${options.except}`;
    const existing = this.#fetches.get(key);
    if (existing) return existing;
    const fetched = this.#previous.then(
      () => this.#provenBy(hash, options) ?? this.#fetch(number, hash, options),
    );
    this.#previous = fetched.catch(() => undefined);
    this.#fetches.set(key, fetched);
    return fetched;
  }

  /** Fetches what is not proven again from now on: a node may have lacked it. */
  beginRound(): void {
    this.#fetches.clear();
  }

  /** Fetches a block again in the next round: its transactions were not those of the upstream. */
  doubt(hash: string): void {
    this.#proven.delete(hash);
  }

  #provenBy(hash: string, { except }: AskOptions): ReadBlock | undefined {
    const proven = this.#proven.get(hash);
    return proven?.node === except ? undefined : proven;
  }

  async #fetch(number: number, hash: string, options: AskOptions): Promise<ReadBlock> {
    const { node, result } = await this.#chain.call<unknown>('chain_getBlock', [hash], options);
    const block = isObject(result) ? result.block : null;
    const { header, extrinsics: json } = isObject(block) ? block : {};
    // Some nodes respond with block 0 if they do not have the block.
    const isBlock = Buffer.isBuffer(json) && blockNumberOf(header) === number;
    const extrinsics = isBlock ? await readExtrinsics(json) : null;
    if (extrinsics === null) return { node, hashes: null, tree: '' };
    const tree = await this.#prove(`block ${number}`, hash, header, extrinsics);
    const read = { node, hashes: extrinsics.map((one) => one.hash), tree };
    if (typeof tree !== 'string') this.#keep(hash, read);
    return read;
  }

  #keep(hash: string, read: ReadBlock): void {
    this.#proven.set(hash, read);
    const [oldest] = this.#proven.keys();
    if (this.#proven.size > MAX_BLOCKS && oldest !== undefined) this.#proven.delete(oldest);
  }

  /** Reproduces the data root and the hash of the header. Returns a text if that fails. */
  async #prove(
    name: string,
    hash: string,
    header: unknown,
    extrinsics: readonly Extrinsic[],
  ): Promise<DataTree | string> {
    const parsed = nodeHeaderSchema.safeParse(header);
    if (!parsed.success) return `the header of ${name} has no V3 extension`;
    if (hashHeader(parsed.data) !== hash) return `the node sends another header for ${name}`;
    const { dataRoot } = parsed.data.extension.V3.commitment;
    const trees = LAYOUTS.map((layout) => dataIn(extrinsics, (one) => one.data[layout]));
    const provenBy = (bridgeRoot: Uint8Array) => {
      const data = trees.find(
        (one) => dataRoot === toHex(hashPair(rootOf(one.leaves), bridgeRoot)),
      );
      const header = JSON.stringify(parsed.data);
      const block = { hash, header, dataRoot, bridgeRoot: toHex(bridgeRoot) };
      return data && { data: data.byIndex, block: { ...block, leaves: data.leaves } };
    };
    const proven = provenBy(NO_BRIDGE);
    const index = trees.flatMap(({ byIndex }) => [...byIndex.keys()])[0];
    if (proven || index === undefined) return proven ?? `${name} submits no data directly`;
    const bridgeRoot = await this.#bridgeRoot(index, hash);
    if (typeof bridgeRoot === 'string') return `${name} has bridge messages, and ${bridgeRoot}`;
    return provenBy(bridgeRoot) ?? `${name} has another data root than its calls of submit_data`;
  }

  /** Returns what proves the data of a block with bridge messages; a text: why it is not known. */
  async #bridgeRoot(index: number, hash: string): Promise<Uint8Array | string> {
    try {
      const { result } = await this.#chain.call<unknown>('kate_queryDataProof', [index, hash]);
      const { dataProof } = isObject(result) ? result : {};
      const { roots } = isObject(dataProof) ? dataProof : {};
      const { bridgeRoot } = isObject(roots) ? roots : {};
      return Buffer.from(String(bridgeRoot).slice(2), 'hex');
    } catch (error) {
      if (error instanceof ChainError) return error.message;
      throw error;
    }
  }
}

function dataIn(
  extrinsics: readonly Extrinsic[],
  dataOf: (extrinsic: Extrinsic) => DataHashes | undefined,
) {
  const byIndex = new Map<number, DataHashes & { leafIndex: number }>();
  for (const [index, extrinsic] of extrinsics.entries()) {
    const data = dataOf(extrinsic);
    if (data) byIndex.set(index, { ...data, leafIndex: byIndex.size });
  }
  return { byIndex, leaves: [...byIndex.values()].map(({ leaf }) => leaf) };
}
