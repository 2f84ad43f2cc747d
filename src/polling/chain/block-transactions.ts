import { setImmediate } from 'node:timers/promises';
import { blake2b } from '@noble/hashes/blake2.js';
import { isObject } from '../../lib/json.ts';
import { blockNumberOf } from './node.ts';
import type { Chain } from './port.ts';

/** Blocks whose hashes are kept; the submissions of a block are found final within seconds. */
const MAX_BLOCKS = 16;
/** Bytes that are hashed without a break: at 30 MB/s, two milliseconds, or four with data. */
const SLICE_BYTES = 64 * 1024;
/** Pallet and call of `dataAvailability.submit_data` on Avail. Its only argument is the data. */
const SUBMIT_DATA = [29, 1] as const;
/** Length, version, signature and extensions before the call take at most about 150 bytes. */
const MAX_HEAD_BYTES = 256;
/** The first bit of the version of a signed extrinsic. */
const SIGNED = 0x80;
/** Version, account and signature, which may contain any bytes, take at least so many. */
const MIN_SIGNED_BYTES = 1 + 33 + 65;
/** Extrinsics of a block: a block of Avail has no space for as many. */
const MAX_EXTRINSICS = 50_000;
/** Characters between two extrinsics: a comma and spaces. */
const MAX_BETWEEN = 64;
/** The hash of an extrinsic takes at least as long as that of so many characters. */
const MIN_CHARS = 512;

/** BLAKE2b-256 of an extrinsic, and of the data of its `submit_data` call; null: no such call. */
type Transaction = { hash: string; dataHash: string | null };

/** `transactions`: in the order of the block; null: the node lacks its body. */
export type FetchedBlock = { node: string; transactions: readonly Transaction[] | null };

/** Fetches blocks once, and keeps hashes only. One block at a time: each may take tens of MiB. */
export class BlockTransactions {
  readonly #chain: Chain;
  readonly #blocks = new Map<string, Promise<FetchedBlock>>();
  #previous: Promise<unknown> = Promise.resolve();

  constructor(chain: Chain) {
    this.#chain = chain;
  }

  /** `except`: a node that is not asked if there is another one. Rejects with ChainError. */
  of(
    blockNumber: number,
    blockHash: string,
    options: { except?: string } = {},
  ): Promise<FetchedBlock> {
    const key = `${blockHash} ${options.except}`;
    const existing = this.#blocks.get(key);
    if (existing) return existing;
    const fetched = this.#previous.then(() => this.#fetch(blockNumber, blockHash, options));
    this.#previous = fetched.catch(() => undefined);
    this.#blocks.set(key, fetched);
    const [oldest] = this.#blocks.keys();
    if (this.#blocks.size > MAX_BLOCKS && oldest !== undefined) this.#blocks.delete(oldest);
    return fetched;
  }

  /** Fetches blocks again from now on: a node may have lacked one, or had another content. */
  forget(): void {
    this.#blocks.clear();
  }

  async #fetch(
    blockNumber: number,
    blockHash: string,
    options: { except?: string },
  ): Promise<FetchedBlock> {
    const params = [blockHash];
    const { node, result } = await this.#chain.call<unknown>('chain_getBlock', params, options);
    const block = isObject(result) ? result.block : null;
    const extrinsics = isObject(block) ? block.extrinsics : null;
    // Some nodes respond with block 0 if they do not have the block.
    const isOther = isObject(block) && blockNumberOf(block.header) !== blockNumber;
    if (!Buffer.isBuffer(extrinsics) || isOther) return { node, transactions: null };
    return { node, transactions: await transactionsOf(extrinsics) };
  }
}

/** Hashes the extrinsics in a JSON list without brackets; null if it is no list of texts. */
async function transactionsOf(json: Buffer): Promise<Transaction[] | null> {
  const transactions: Transaction[] = [];
  let [at, chars] = [0, 0];
  for (let start = json.indexOf('"'); start >= 0; start = json.indexOf('"', at)) {
    const end = json.indexOf('"', start + 1);
    const isNext = isBetween(json.subarray(at, start), at === 0 ? '' : ',');
    if (end < 0 || !isNext || transactions.length >= MAX_EXTRINSICS) return null;
    transactions.push(await transactionOf(json.subarray(start + 1, end)));
    at = end + 1;
    chars += Math.max(MIN_CHARS, end - start);
    if (chars < 2 * SLICE_BYTES) continue;
    chars = 0;
    await setImmediate();
  }
  return isBetween(json.subarray(at), '') ? transactions : null;
}

function isBetween(json: Buffer, separator: string): boolean {
  return json.length <= MAX_BETWEEN && json.toString('latin1').trim() === separator;
}

// Node's crypto has BLAKE2b with 512 bits only, and another length is another function.
const HASH_256 = { dkLen: 32 };
const toHex = (digest: Uint8Array) => `0x${Buffer.from(digest).toString('hex')}`;

/** Hashes an extrinsic in hexadecimal with 0x. Other work runs between slices. */
async function transactionOf(hex: Buffer): Promise<Transaction> {
  const whole = blake2b.create(HASH_256);
  const dataStart = dataStartOf(hex);
  const data = dataStart === null ? null : blake2b.create(HASH_256);
  const bytes = byteLength(hex);
  for (let from = 0; from < bytes; from += SLICE_BYTES) {
    const slice = bytesOf(hex, from, from + SLICE_BYTES);
    whole.update(slice);
    data?.update(slice.subarray(Math.max(0, (dataStart ?? 0) - from)));
    if (bytes > SLICE_BYTES) await setImmediate();
  }
  return { hash: toHex(whole.digest()), dataHash: data && toHex(data.digest()) };
}

/**
 * Returns where the data begin, in bytes; null if it does not end with `submit_data`. Their SCALE
 * length precedes them. Bytes are compared, so that other extensions change nothing.
 */
function dataStartOf(hex: Buffer): number | null {
  const head = bytesOf(hex, 0, MAX_HEAD_BYTES);
  const bytes = byteLength(hex);
  const versionAt = compactAt(head, 0)?.end ?? 0;
  const isSigned = ((head[versionAt] ?? 0) & SIGNED) !== 0;
  const start = versionAt + (isSigned ? MIN_SIGNED_BYTES : 1);
  for (let at = start; at + SUBMIT_DATA.length < head.length; at += 1) {
    if (head[at] !== SUBMIT_DATA[0] || head[at + 1] !== SUBMIT_DATA[1]) continue;
    const length = compactAt(head, at + SUBMIT_DATA.length);
    if (length && length.end + length.value === bytes) return length.end;
  }
  return null;
}

/** Reads a compact integer of at most four bytes: the length of up to 1 GiB. */
function compactAt(bytes: Buffer, at: number): { value: number; end: number } | null {
  const size = [1, 2, 4][(bytes[at] ?? 3) & 3];
  if (size === undefined || at + size > bytes.length) return null;
  return { value: Math.floor(bytes.readUIntLE(at, size) / 4), end: at + size };
}

function byteLength(hex: Buffer): number {
  return Math.floor((hex.length - 2) / 2);
}

function bytesOf(hex: Buffer, from: number, to: number): Buffer {
  return Buffer.from(hex.toString('latin1', 2 + 2 * from, 2 + 2 * to), 'hex');
}
