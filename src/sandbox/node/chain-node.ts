import { blockHash, numberInHash } from '../chain/digest.ts';
import { timestampExtrinsic } from '../chain/extrinsics.ts';
import { createHeader, type Header, NO_DATA } from '../chain/header.ts';
import type { UpstreamClock } from '../clock.ts';
import type { Model } from '../model.ts';
import { invalidParams, type Method, type Methods } from './json-rpc.ts';
import type { NodeFault } from './node-faults.ts';

type NodeSetting = {
  seed: number;
  model: Model;
  clock: UpstreamClock;
  /** Epoch milliseconds. */
  now: () => number;
  fault: () => NodeFault;
};

/**
 * A node of the sandbox's chain: what it says about blocks, with its faults. Hashes, numbers and
 * extrinsics agree with the rows that the sandbox serves.
 */
export function createChainNode({ seed, model, clock, now, fault }: NodeSetting) {
  /** The chain with which a fault replaces the one of the model. */
  function falseChainOf(blockNumber: number): string | undefined {
    const { kind } = fault();
    if (kind === 'other_chain') return `other ${seed}`;
    return kind === 'lying' && blockNumber > 0 ? `lie ${seed}` : undefined;
  }

  /** Returns the hash of a block that was produced, 64 hex digits. */
  function hashOf(blockNumber: number): string {
    const chain = falseChainOf(blockNumber);
    return chain === undefined ? model.hashOf(blockNumber) : blockHash(chain, blockNumber);
  }

  function heights() {
    const { kind, seconds } = fault();
    const seen = model.heights(now(), kind === 'lagging' ? clock.seconds(seconds) : 0);
    return kind === 'early' ? { ...seen, final: seen.best, nextFinalMs: seen.nextBestMs } : seen;
  }

  /** Returns the number of the block with the hash, by default the newest. */
  function numberOf(hash: unknown): number | undefined {
    const { best } = heights();
    if (hash === undefined || hash === null) return best;
    if (typeof hash !== 'string' || !/^0x[0-9a-f]{64}$/i.test(hash))
      throw invalidParams('expected a hash of 32 bytes');
    const digits = hash.slice(2).toLowerCase();
    const number = model.numberOf(digits) ?? numberInHash(digits);
    return number <= best && hashOf(number) === digits ? number : undefined;
  }

  function hashAt(given: unknown): unknown {
    if (Array.isArray(given)) return given.map(hashAt);
    const { best } = heights();
    const number = given === undefined || given === null ? best : blockNumberOf(given);
    return number <= best ? `0x${hashOf(number)}` : null;
  }

  function headerOf(number: number): Header {
    const chain = falseChainOf(number);
    return chain === undefined
      ? model.headerOf(number)
      : createHeader(chain, number, { parentHash: hashOf(number - 1), ...NO_DATA });
  }

  function bodyOf(number: number): Uint8Array[] | undefined {
    const { kind, seconds } = fault();
    const producedMs = model.producedAt(number);
    if (producedMs === undefined) return undefined;
    if (kind === 'pruned' && producedMs < now() - clock.seconds(seconds)) return undefined;
    return kind === 'other_chain' ? [timestampExtrinsic(producedMs)] : model.extrinsicsOf(number);
  }

  function blockOf(number: number): object | null {
    const extrinsics = bodyOf(number)?.map((bytes) => `0x${Buffer.from(bytes).toString('hex')}`);
    return extrinsics === undefined
      ? null
      : { block: { header: headerOf(number), extrinsics }, justifications: null };
  }

  const byHash =
    (find: (blockNumber: number) => object | null): Method =>
    ([hash]) => {
      const number = numberOf(hash);
      return number === undefined ? null : find(number);
    };

  const methods: Methods = {
    chain_getFinalizedHead: () => `0x${hashOf(heights().final)}`,
    chain_getHeader: byHash(headerOf),
    chain_getBlockHash: ([given]) => hashAt(given),
    chain_getBlock: byHash(blockOf),
    system_chain: () => (fault().kind === 'other_chain' ? 'another chain' : 'dawatch sandbox'),
    system_health: () => ({ peers: 8, isSyncing: false, shouldHavePeers: true }),
  };
  return { methods, heights, headerOf };
}

/** Parses a block number: a number, or hex digits after 0x. */
function blockNumberOf(given: unknown): number {
  const isHex = typeof given === 'string' && /^0x[0-9a-f]{1,8}$/i.test(given);
  const number = isHex ? Number(given) : given;
  if (typeof number !== 'number' || !Number.isInteger(number) || number < 0 || number >= 2 ** 32)
    throw invalidParams('expected a block number');
  return number;
}
