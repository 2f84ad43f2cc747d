import { setImmediate } from 'node:timers/promises';
import { blake2b } from '@noble/hashes/blake2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { hashPair } from '../../client/proof.ts';

/** Bytes that are hashed without a break: at 20 MB/s, three milliseconds. */
const SLICE_BYTES = 64 * 1024;
/** Length, version, signature, extensions and call take at most about 150 bytes before the data. */
const MAX_HEAD_BYTES = 256;
/** An extrinsic of version 4 with a signature. */
const SIGNED_V4 = 0x84;
/** The kind of an address; the runtime accepts this one and an account index. */
const ACCOUNT_ID = 0;
/** Bytes of a signature by its kind. */
const SIGNATURE_BYTES = [64, 64, 65] as const;
/** Pallet and call of `dataAvailability.submit_data`. */
const SUBMIT_DATA = [29, 1] as const;
/** Extrinsics of a block: a block of Avail has no space for as many. */
const MAX_EXTRINSICS = 50_000;
/** Characters between two extrinsics: a comma and spaces. */
const MAX_BETWEEN = 64;
/** The hash of an extrinsic takes at least as long as that of so many characters. */
const MIN_CHARS = 512;
const ZERO = new Uint8Array(32);
const HASH_256 = { dkLen: 32 };

/**
 * Where a runtime has the application of a submission: main network, spec 49, in a signed
 * extension; its successor as the first argument. A block is made by one runtime.
 */
export const LAYOUTS = ['extension', 'argument'] as const;
type Layout = (typeof LAYOUTS)[number];

/** Hashes of submitted data: BLAKE2b-256, and Keccak-256, which is the leaf of the data tree. */
type SubmittedData = { appId: number; blake2b: string; leaf: Uint8Array };

/** BLAKE2b-256 of an extrinsic, and the data that it submits in each layout. */
export type Extrinsic = { hash: string; data: Partial<Record<Layout, SubmittedData>> };

/** Hashes the extrinsics in a JSON list without brackets; null if it is no list of texts. */
export async function readExtrinsics(json: Buffer): Promise<Extrinsic[] | null> {
  const extrinsics: Extrinsic[] = [];
  let [at, chars] = [0, 0];
  for (let start = json.indexOf('"'); start >= 0; start = json.indexOf('"', at)) {
    const end = json.indexOf('"', start + 1);
    const isNext = isBetween(json.subarray(at, start), at === 0 ? '' : ',');
    if (end < 0 || !isNext || extrinsics.length >= MAX_EXTRINSICS) return null;
    extrinsics.push(await readExtrinsic(json.subarray(start + 1, end)));
    at = end + 1;
    chars += Math.max(MIN_CHARS, end - start);
    if (chars < 2 * SLICE_BYTES) continue;
    chars = 0;
    await setImmediate();
  }
  return isBetween(json.subarray(at), '') ? extrinsics : null;
}

function isBetween(json: Buffer, separator: string): boolean {
  return json.length <= MAX_BETWEEN && json.toString('latin1').trim() === separator;
}

/** Hashes an extrinsic in hexadecimal with 0x. Other work runs between slices. */
async function readExtrinsic(hex: Buffer): Promise<Extrinsic> {
  const bytes = Math.floor((hex.length - 2) / 2);
  const head = bytesOf(hex, 0, MAX_HEAD_BYTES);
  const whole = blake2b.create(HASH_256);
  const submitted = LAYOUTS.flatMap((layout) => {
    const call = findCall(head, bytes, layout);
    if (call === null) return [];
    return [{ layout, ...call, blake2b: blake2b.create(HASH_256), keccak: keccak_256.create() }];
  });
  for (let from = 0; from < bytes; from += SLICE_BYTES) {
    const slice = bytesOf(hex, from, from + SLICE_BYTES);
    whole.update(slice);
    for (const { start, blake2b, keccak } of submitted) {
      const data = slice.subarray(Math.max(0, start - from));
      blake2b.update(data);
      keccak.update(data);
    }
    if (bytes > SLICE_BYTES) await setImmediate();
  }
  const data = submitted.map(({ layout, appId, blake2b, keccak }) => {
    return [layout, { appId, blake2b: toHex(blake2b.digest()), leaf: keccak.digest() }] as const;
  });
  return { hash: toHex(whole.digest()), data: Object.fromEntries(data) };
}

/**
 * Returns the application of a direct call of `submit_data`, and where its data begin, in bytes;
 * null: another call, or no data, which the data tree leaves out. `head`: the first bytes of an
 * extrinsic of `bytes`.
 */
function findCall(
  head: Buffer,
  bytes: number,
  layout: Layout,
): { appId: number; start: number } | null {
  let at = 0;
  const byte = () => head[at++] ?? Number.NaN;
  /** A function, because `at += byte()` would add to the position before that byte. */
  const skip = (count: number) => {
    at += count;
  };
  /** Reads a compact integer; NaN beyond 30 bits. */
  const compact = () => {
    const first = byte();
    if ((first & 3) === 3) {
      at += (first >> 2) + 4;
      return Number.NaN;
    }
    const size = 2 ** (first & 3);
    at += size - 1;
    return at <= head.length ? Math.floor(head.readUIntLE(at - size, size) / 4) : Number.NaN;
  };
  if (compact() + at !== bytes || byte() !== SIGNED_V4) return null;
  if (byte() === ACCOUNT_ID) skip(32);
  else compact(); // Account index
  skip(SIGNATURE_BYTES[byte()] ?? Number.NaN);
  // A mortal era has two bytes.
  if (byte() !== 0) skip(1);
  compact(); // Nonce
  compact(); // Tip
  let appId = layout === 'extension' ? compact() : 0;
  if (byte() !== SUBMIT_DATA[0] || byte() !== SUBMIT_DATA[1]) return null;
  if (layout === 'argument') appId = compact();
  const length = compact();
  return length > 0 && at + length === bytes ? { appId, start: at } : null;
}

/** The data that a block submits, by the index of the transaction, and the leaves of their tree. */
export type DataTree = {
  data: ReadonlyMap<number, SubmittedData & { leafIndex: number }>;
  leaves: readonly Uint8Array[];
};

/** The successor of spec 49 sorts the data by application. */
export function treeOf(extrinsics: readonly Extrinsic[], layout: Layout): DataTree {
  const submitted = extrinsics.flatMap(({ data: { [layout]: data } }, index) =>
    data ? [{ ...data, index }] : [],
  );
  if (layout === 'argument') submitted.sort((one, other) => one.appId - other.appId);
  const data = submitted.map((one, leafIndex) => [one.index, { ...one, leafIndex }] as const);
  return { data: new Map(data), leaves: submitted.map(({ leaf }) => leaf) };
}

/** Returns the root of the leaves: zeros if there are none. */
export function rootOf(leaves: readonly Uint8Array[]): Uint8Array {
  return levelsOf(leaves).at(-1)?.[0] ?? ZERO;
}

/** Returns the nodes of the tree from the leaves, to which zeros are added, to the root. */
export function levelsOf(leaves: readonly Uint8Array[]): Uint8Array[][] {
  if (leaves.length === 0) return [];
  const width = 2 ** Math.ceil(Math.log2(leaves.length));
  let level: Uint8Array[] = Array.from({ length: width }, (_, index) =>
    keccak_256(leaves[index] ?? ZERO),
  );
  const levels = [level];
  while (level.length > 1) {
    const below = level;
    level = Array.from({ length: below.length / 2 }, (_, index) =>
      hashPair(below[2 * index] as Uint8Array, below[2 * index + 1] as Uint8Array),
    );
    levels.push(level);
  }
  return levels;
}

function bytesOf(hex: Buffer, from: number, to: number): Buffer {
  return Buffer.from(hex.toString('latin1', 2 + 2 * from, 2 + 2 * to), 'hex');
}

export function toHex(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes).toString('hex')}`;
}
