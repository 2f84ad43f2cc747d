import { keccak_256 } from '@noble/hashes/sha3.js';
import { digest } from './digest.ts';
import { APP_ID, blake2b256, compact } from './extrinsics.ts';

/** A header as nodes serve it. Texts are hex digits after 0x. */
export type Header = ReturnType<typeof createHeader>;

/** Beginning of the extension of a header. */
const V3 = Buffer.from([2]);
/** Beginnings of two logs of BABE, which end with 12 and 64 bytes. */
const PRE_RUNTIME = '0x064241424530';
const SEAL = '0x05424142450101';
/** The matrix of the data: bytes of a cell, and its size. A full block has all rows. */
const CELL_BYTES = 31;
const COLUMNS = 512;
const MAX_ROWS = 256;
/** Each row of the matrix has two commitments of 48 bytes. */
const COMMITMENT_BYTES = 96;
const ZEROS = new Uint8Array(32);
const PADDING = keccak_256(ZEROS);

/** What a header says about its submissions. `dataRoot`: 64 hex digits. */
export type Submitted = { dataRoot: string; dataBytes: number };
export const NO_DATA: Submitted = { dataRoot: dataRootOf([]), dataBytes: 0 };

/**
 * Returns the header of a block; its other roots, logs and commitments are random bytes.
 * `chain`: names the chain, usually its seed. `parentHash`: 64 hex digits.
 */
export function createHeader(
  chain: string | number,
  number: number,
  { parentHash, dataRoot, dataBytes }: Submitted & { parentHash: string },
) {
  const random = (name: string) => digest(name, chain, number);
  const size = Math.ceil(dataBytes / CELL_BYTES);
  const rows = Math.min(MAX_ROWS, Math.ceil(size / COLUMNS));
  return {
    parentHash: `0x${parentHash}`,
    number: `0x${number.toString(16)}`,
    stateRoot: `0x${random('state')}`,
    extrinsicsRoot: `0x${random('extrinsics')}`,
    digest: {
      logs: [
        `${PRE_RUNTIME}${random('slot').slice(0, 24)}`,
        `${SEAL}${random('seal')}${random('signature')}`,
      ],
    },
    extension: {
      V3: {
        appLookup: { size, index: size === 0 ? [] : [{ appId: APP_ID, start: 0 }] },
        commitment: {
          rows,
          cols: rows === 0 ? 0 : COLUMNS,
          commitment: [...Buffer.alloc(rows * COMMITMENT_BYTES, random('commitment'), 'hex')],
          dataRoot: `0x${dataRoot}`,
        },
      },
    },
  };
}

/** Returns the BLAKE2b-256 hash of the SCALE-encoded header: 64 hex digits. */
export function hashOfHeader(header: Header): string {
  const { appLookup, commitment } = header.extension.V3;
  return blake2b256(
    Buffer.concat([
      bytesOf(header.parentHash),
      compact(Number(header.number)),
      bytesOf(header.stateRoot),
      bytesOf(header.extrinsicsRoot),
      compact(header.digest.logs.length),
      ...header.digest.logs.map(bytesOf),
      V3,
      compact(appLookup.size),
      compact(appLookup.index.length),
      ...appLookup.index.flatMap(({ appId, start }) => [compact(appId), compact(start)]),
      compact(commitment.rows),
      compact(commitment.cols),
      compact(commitment.commitment.length),
      Uint8Array.from(commitment.commitment),
      bytesOf(commitment.dataRoot),
    ]),
  );
}

/** Returns the leaf of submitted data in the tree below the data root. */
export function leafOf(data: Uint8Array): Uint8Array {
  return keccak_256(keccak_256(data));
}

/** Returns the data root of a block without bridge messages: 64 hex digits. */
export function dataRootOf(leaves: readonly Uint8Array[]): string {
  return Buffer.from(keccak_256(Buffer.concat([blobRootOf(leaves), ZEROS]))).toString('hex');
}

function blobRootOf(leaves: readonly Uint8Array[]): Uint8Array {
  if (leaves.length === 0) return ZEROS;
  const width = 2 ** Math.ceil(Math.log2(leaves.length));
  let nodes = Array.from({ length: width }, (_, index) => leaves[index] ?? PADDING);
  while (nodes.length > 1)
    nodes = Array.from({ length: nodes.length / 2 }, (_, index) =>
      keccak_256(Buffer.concat(nodes.slice(2 * index, 2 * index + 2))),
    );
  return nodes[0] ?? ZEROS;
}

function bytesOf(hex: string): Buffer {
  return Buffer.from(hex.slice(2), 'hex');
}
