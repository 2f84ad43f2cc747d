// Node's crypto has BLAKE2b with 512 bits only, and another length is another function.
import { blake2b } from '@noble/hashes/blake2.js';
import { digest } from './digest.ts';

/** The version of a signed extrinsic, and an address that is an account id. */
const ADDRESS = Buffer.from([0x84, 0]);
/** The kind of the signature, which has 64 bytes. */
const SR25519 = Buffer.from([1]);
const IMMORTAL = Buffer.from([0]);
const NO_TIP = Buffer.from([0]);
const UNSIGNED_V4 = 0x04;
/** Pallet and call, as in the runtime of Avail's main network. */
const TIMESTAMP_SET = [3, 0];
const TRANSFER_KEEP_ALIVE = [6, 3];
const SUBMIT_DATA = [29, 1];
/** The application of the sandbox's first user. */
export const APP_ID = 100;

/** Position of an extrinsic on the chain of a seed. */
type Position = { seed: number; blockNumber: number; txIndex: number };

/** Returns the BLAKE2b hash of 256 bits as 64 hex digits. */
export function blake2b256(bytes: Uint8Array): string {
  return Buffer.from(blake2b(bytes, { dkLen: 32 })).toString('hex');
}

/** Returns the encoded extrinsic that submits the data. */
export function submitDataExtrinsic(position: Position, data: Uint8Array): Uint8Array {
  return signed(position, APP_ID, [Buffer.from(SUBMIT_DATA), compact(data.length), data]);
}

/** Returns an encoded transfer between accounts that are not the sandbox's. */
export function transferExtrinsic(position: Position): Uint8Array {
  const { seed, blockNumber, txIndex } = position;
  const target = bytesOf('target', seed, blockNumber, txIndex);
  const amount = compact(target.readUInt32LE());
  return signed(position, 0, [Buffer.from([...TRANSFER_KEEP_ALIVE, 0]), target, amount]);
}

/** Returns the encoded extrinsic with which the author of a block sets its time (epoch ms). */
export function timestampExtrinsic(atMs: number): Uint8Array {
  return withLength([Buffer.from([UNSIGNED_V4, ...TIMESTAMP_SET]), compact(Math.floor(atMs))]);
}

function signed(
  { seed, blockNumber, txIndex }: Position,
  appId: number,
  call: readonly Uint8Array[],
): Uint8Array {
  // Makes each transaction different; neither the account nor the signature is valid.
  const unique = bytesOf('transaction', seed, blockNumber, txIndex);
  return withLength([
    ADDRESS,
    unique,
    SR25519,
    unique,
    unique,
    IMMORTAL,
    compact(blockNumber),
    NO_TIP,
    compact(appId),
    ...call,
  ]);
}

function bytesOf(...parts: readonly (string | number)[]): Buffer {
  return Buffer.from(digest(...parts), 'hex');
}

function withLength(parts: readonly Uint8Array[]): Uint8Array {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([compact(length), ...parts]);
}

/** Encodes a whole number of at most 2^53 as a compact integer of SCALE. */
export function compact(value: number): Buffer {
  if (value < 2 ** 6) return littleEndian(value * 4, 1);
  if (value < 2 ** 14) return littleEndian(value * 4 + 1, 2);
  if (value < 2 ** 30) return littleEndian(value * 4 + 2, 4);
  const length = Math.ceil(value.toString(16).length / 2);
  return Buffer.concat([littleEndian((length - 4) * 4 + 3, 1), littleEndian(value, length)]);
}

function littleEndian(value: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  bytes.writeUIntLE(value, 0, Math.min(length, 6));
  return bytes;
}
