import { blake2b } from '@noble/hashes/blake2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesToHex, concatBytes, hexToBytes } from '@noble/hashes/utils.js';
import type { Proof } from './api.ts';

export type { Proof } from './api.ts';

/** The proof does not show that the data are in the block. */
export class InvalidProofError extends Error {
  override readonly name = 'InvalidProofError';
}

/**
 * Returns if the data are in the data root of the block, whose hash covers that root. Throws
 * InvalidProofError otherwise. Needs no connection, and no trust in dawatch.
 */
export function verifyProof(proof: Proof, data: Uint8Array): void {
  try {
    verify(proof, data);
  } catch (error) {
    if (error instanceof InvalidProofError) throw error;
    throw new InvalidProofError('the proof is incomplete or malformed', { cause: error });
  }
}

function verify({ header, index, siblings, ...proof }: Proof, data: Uint8Array): void {
  check(proof.leaf === toHex(keccak_256(data)), 'the data are not those of the leaf');
  const isInTree = Number.isInteger(index) && index >= 0 && index < 2 ** siblings.length;
  check(isInTree, 'the index is outside the tree');
  let node: Uint8Array = keccak_256(toBytes(proof.leaf, 32));
  for (const [level, sibling] of siblings.entries()) {
    const other = toBytes(sibling, 32);
    const isLeft = Math.floor(index / 2 ** level) % 2 === 0;
    node = isLeft ? hashPair(node, other) : hashPair(other, node);
  }
  const root = toHex(hashPair(node, toBytes(proof.bridge_root, 32)));
  const isRoot = root === proof.data_root && root === header.extension.V3.commitment.dataRoot;
  check(isRoot, 'the leaf does not lead to the data root of the header');
  const number = `0x${proof.block_number.toString(16)}`;
  check(header.number === number, 'the header has another block number');
  check(hashHeader(header) === proof.block_hash, 'the header has another hash');
}

function check(condition: boolean, problem: string): void {
  if (!condition) throw new InvalidProofError(problem);
}

/** Returns the node of the data tree above two others: the Keccak-256 hash of both. */
export function hashPair(left: Uint8Array, right: Uint8Array): Uint8Array {
  return keccak_256(concatBytes(left, right));
}

/** Returns the hash of a block: BLAKE2b-256 of its header in SCALE. Throws if it is malformed. */
export function hashHeader({ digest, extension, ...header }: Proof['header']): string {
  const { appLookup, commitment } = extension.V3;
  const committed = toBytes(commitment.commitment);
  const parts = [
    toBytes(header.parentHash, 32),
    compact(Number(header.number)),
    toBytes(header.stateRoot, 32),
    toBytes(header.extrinsicsRoot, 32),
    compact(digest.logs.length),
    ...digest.logs.map((log) => toBytes(log)),
    // The third variant of the extension.
    Uint8Array.of(2),
    compact(appLookup.size),
    compact(appLookup.index.length),
    ...appLookup.index.flatMap(({ appId, start }) => [compact(appId), compact(start)]),
    ...[compact(commitment.rows), compact(commitment.cols)],
    ...[compact(committed.length), committed],
    toBytes(commitment.dataRoot, 32),
  ];
  return toHex(blake2b(concatBytes(...parts), { dkLen: 32 }));
}

/** Encodes a whole number of 32 bits as a compact integer of SCALE. */
function compact(value: number): Uint8Array {
  if (!Number.isInteger(value) || value < 0 || value >= 2 ** 32) throw new RangeError('no u32');
  if (value < 2 ** 6) return littleEndian(value * 4, 1);
  if (value < 2 ** 14) return littleEndian(value * 4 + 1, 2);
  if (value < 2 ** 30) return littleEndian(value * 4 + 2, 4);
  return littleEndian(value * 256 + 3, 5);
}

function littleEndian(value: number, length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, byte) => Math.floor(value / 256 ** byte));
}

/** Strict, so that each change of a proof is one of its meaning. */
function toBytes(hex: string, length?: number): Uint8Array {
  if (!/^0x(?:[0-9a-f]{2})*$/.test(hex)) throw new TypeError('not hexadecimal');
  if (length !== undefined && hex.length !== 2 + 2 * length) throw new TypeError('wrong length');
  return hexToBytes(hex.slice(2));
}

function toHex(bytes: Uint8Array): string {
  return `0x${bytesToHex(bytes)}`;
}
