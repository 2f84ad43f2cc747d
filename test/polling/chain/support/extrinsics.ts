import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { blake2b } from '@noble/hashes/blake2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { hashPair } from '../../../../src/client/proof.ts';
import { readExtrinsics, rootOf, toHex } from '../../../../src/polling/chain/data-root.ts';

/**
 * An extrinsic of Avail in hexadecimal. `layout`: which part contains the application. `data`:
 * null if it does not submit data directly.
 */
export type SignedExtrinsic = {
  name: string;
  layout: 'extension' | 'argument';
  extrinsic: string;
  data: string | null;
};
/** The first line of the recording; each other line is an extrinsic. */
export type RecordingHead = {
  /** The packages that encoded the extrinsics. */
  recorded: Record<string, string>;
  /** The chain and the runtime whose metadata they used, and where these were changed. */
  source: Record<SignedExtrinsic['layout'], string>;
  /** The data root that the runtime computes for `inOneBlock` the extrinsics. */
  dataRoot: string;
};

export const RECORDING = join(import.meta.dirname, '../recorded-extrinsics.ndjson');

export function readRecorded(): RecordingHead & { extrinsics: SignedExtrinsic[] } {
  const lines = readFileSync(RECORDING, 'utf8').trimEnd().split('\n');
  const [head, ...extrinsics] = lines.map((line) => JSON.parse(line));
  return { ...head, extrinsics };
}

const NO_BRIDGE = new Uint8Array(32);

/** Returns the hashes of the data that are found in an extrinsic; null: none. */
export async function hashesIn({ extrinsic, layout }: SignedExtrinsic) {
  const read = await readAll([extrinsic]);
  const { blake2b, leaf } = read[0]?.data[layout] ?? {};
  return leaf ? { blake2b, leaf } : null;
}

export function hashesOf(data: string | null) {
  if (data === null) return null;
  const bytes = Buffer.from(data.slice(2), 'hex');
  return { blake2b: toHex(blake2b(bytes, { dkLen: 32 })), leaf: keccak_256(bytes) };
}

/** Returns the extrinsics that a block of one runtime can have without bridge messages. */
export function inOneBlock(extrinsics: readonly SignedExtrinsic[]): string[] {
  return extrinsics
    .filter(({ layout, name }) => layout === 'extension' && name !== 'send_message')
    .map(({ extrinsic }) => extrinsic);
}

/** Returns the data root of a block without bridge messages. */
export async function dataRootOf(block: readonly string[]): Promise<string> {
  const leaves = (await readAll(block)).flatMap(({ data }) => data.extension?.leaf ?? []);
  return toHex(hashPair(rootOf(leaves), NO_BRIDGE));
}

async function readAll(extrinsics: readonly string[]) {
  const json = extrinsics.map((extrinsic) => JSON.stringify(extrinsic)).join(',');
  return (await readExtrinsics(Buffer.from(json))) ?? [];
}
