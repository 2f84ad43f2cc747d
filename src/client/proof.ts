import { blake2b } from '@noble/hashes/blake2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesToHex, concatBytes, hexToBytes } from '@noble/hashes/utils.js';
import type { Proof } from './api.ts';

export type { Proof } from './api.ts';

/** More levels than a block has space for. */
const MAX_SIBLINGS = 32;

/** The proof does not show that the data are in the block. */
export class InvalidProofError extends Error {
  override readonly name = 'InvalidProofError';
}

/**
 * Returns if the data are in the data root that `block_hash` covers, and throws InvalidProofError
 * otherwise. Needs no connection. Whether the chain has a block with this hash is not verified:
 * compare it with a node or a block explorer that you trust.
 */
export function verifyProof(proof: Proof, data: Uint8Array): void {
  if (!(data instanceof Uint8Array)) throw new TypeError('data must be bytes');
  try {
    verify(proof, data);
  } catch (error) {
    if (error instanceof InvalidProofError) throw error;
    throw new InvalidProofError('the proof is incomplete or malformed', { cause: error });
  }
}

function verify({ index, siblings, ...proof }: Proof, data: Uint8Array): void {
  check(proof.leaf === toHex(keccak_256(data)), 'the data are not those of the leaf');
  const isInTree = Number.isInteger(index) && index >= 0 && index < 2 ** siblings.length;
  check(isInTree && siblings.length <= MAX_SIBLINGS, 'the index is outside the tree');
  let node: Uint8Array = keccak_256(toBytes(proof.leaf, 32));
  for (const [level, sibling] of siblings.entries()) {
    const other = toBytes(sibling, 32);
    const isLeft = Math.floor(index / 2 ** level) % 2 === 0;
    node = isLeft ? hashPair(node, other) : hashPair(other, node);
  }
  const root = hashPair(node, toBytes(proof.bridge_root, 32));
  const header = toBytes(proof.header);
  // The data root is the last field of a header.
  const isRoot = toHex(root) === proof.data_root && toHex(header.slice(-32)) === proof.data_root;
  check(isRoot, 'the leaf does not lead to the data root of the header');
  check(numberIn(header) === proof.block_number, 'the header has another block number');
  const hash = toHex(blake2b(header, { dkLen: 32 }));
  check(hash === proof.block_hash, 'the header has another hash');
}

function check(condition: boolean, problem: string): void {
  if (!condition) throw new InvalidProofError(problem);
}

/** Returns the node of the data tree above two others: the Keccak-256 hash of both. */
export function hashPair(left: Uint8Array, right: Uint8Array): Uint8Array {
  return keccak_256(concatBytes(left, right));
}

/** Returns the block number, which follows the hash of the parent as a compact integer of SCALE. */
function numberIn(header: Uint8Array): number {
  const view = new DataView(header.buffer, header.byteOffset + 32);
  const first = view.getUint32(0, true);
  const bits = [6, 14, 30][first & 3];
  return bits === undefined ? view.getUint32(1, true) : (first >>> 2) % 2 ** bits;
}

/** Strict, so that each proof has one form. */
function toBytes(hex: string, length = (hex.length - 2) / 2): Uint8Array {
  if (!/^0x(?:[0-9a-f]{2})*$/.test(hex) || hex.length !== 2 + 2 * length)
    throw new TypeError('not hexadecimal, or of another length');
  return hexToBytes(hex.slice(2));
}

function toHex(bytes: Uint8Array): string {
  return `0x${bytesToHex(bytes)}`;
}
