import { setImmediate } from 'node:timers/promises';
import { blake2b } from '@noble/hashes/blake2.js';
import { isObject } from '../../lib/json.ts';
import type { Chain } from './port.ts';

/** Blocks whose hashes are kept; the submissions of a block are found final within seconds. */
const MAX_BLOCKS = 16;
/** Bytes that are hashed without a break: at 30 MB/s, two milliseconds. */
const SLICE_BYTES = 64 * 1024;

/**
 * Fetches blocks once, and keeps the BLAKE2b-256 hashes of their extrinsics, not the bodies. One
 * block at a time, because each may take tens of MiB.
 */
export class BlockTransactions {
  readonly #chain: Chain;
  /** By block hash, the newest last. */
  readonly #hashes = new Map<string, Promise<readonly string[] | null>>();
  #previous: Promise<unknown> = Promise.resolve();

  constructor(chain: Chain) {
    this.#chain = chain;
  }

  /**
   * Returns the hashes of the extrinsics of a block, in its order; null if the node does not have
   * its body. Rejects with ChainError. Concurrent callers share one request.
   */
  of(blockHash: string): Promise<readonly string[] | null> {
    const known = this.#hashes.get(blockHash);
    if (known) return known;
    const hashes = this.#previous.then(() => this.#fetch(blockHash));
    this.#previous = hashes.catch(() => undefined);
    this.#hashes.set(blockHash, hashes);
    const [oldest] = this.#hashes.keys();
    if (this.#hashes.size > MAX_BLOCKS && oldest !== undefined) this.#hashes.delete(oldest);
    const forget = () => {
      if (this.#hashes.get(blockHash) === hashes) this.#hashes.delete(blockHash);
    };
    // Another node may have the body.
    hashes.then((found) => found ?? forget(), forget);
    return hashes;
  }

  async #fetch(blockHash: string): Promise<readonly string[] | null> {
    const response = await this.#chain.call<unknown>('chain_getBlock', [blockHash]);
    const block = isObject(response) ? response.block : null;
    const extrinsics = isObject(block) ? block.extrinsics : null;
    if (!Array.isArray(extrinsics)) return null;
    const hashes: string[] = [];
    let chars = 0;
    for (const extrinsic of extrinsics.map(String)) {
      hashes.push(await hashOf(extrinsic));
      chars += extrinsic.length;
      if (chars < 2 * SLICE_BYTES) continue;
      chars = 0;
      await setImmediate();
    }
    return hashes;
  }
}

/** Returns the BLAKE2b-256 hash of bytes in hexadecimal. Other work runs between slices. */
async function hashOf(hex: string): Promise<string> {
  const state = blake2b.create({ dkLen: 32 });
  for (let from = 2; from < hex.length; from += 2 * SLICE_BYTES) {
    state.update(Buffer.from(hex.slice(from, from + 2 * SLICE_BYTES), 'hex'));
    if (hex.length > 2 * SLICE_BYTES) await setImmediate();
  }
  return `0x${Buffer.from(state.digest()).toString('hex')}`;
}
