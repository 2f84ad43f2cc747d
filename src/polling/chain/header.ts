/** A header as nodes of Avail send it. Texts are hexadecimal with 0x. */
type Header = {
  parentHash: string;
  number: string;
  stateRoot: string;
  extrinsicsRoot: string;
  /** Encoded. */
  digest: { logs: string[] };
  extension: {
    V3: {
      appLookup: { size: number; index: { appId: number; start: number }[] };
      commitment: { rows: number; cols: number; commitment: number[]; dataRoot: string };
    };
  };
};

/** The first byte of the extension V3. */
const V3 = Buffer.from([2]);

/**
 * Returns the header in SCALE, whose BLAKE2b-256 hash is that of the block; it ends with the data
 * root. Null if it has no V3 extension. Other values are not checked: they give another hash.
 */
export function encodeHeader(header: unknown): Buffer | null {
  try {
    const { parentHash, number, stateRoot, extrinsicsRoot, digest, extension } = header as Header;
    const { appLookup, commitment } = extension.V3;
    return Buffer.concat([
      ...[fromHex(parentHash), compact(Number(number))],
      ...[fromHex(stateRoot), fromHex(extrinsicsRoot)],
      ...[compact(digest.logs.length), ...digest.logs.map(fromHex)],
      ...[V3, compact(appLookup.size), compact(appLookup.index.length)],
      ...appLookup.index.flatMap(({ appId, start }) => [compact(appId), compact(start)]),
      ...[compact(commitment.rows), compact(commitment.cols)],
      ...[compact(commitment.commitment.length), Uint8Array.from(commitment.commitment)],
      fromHex(commitment.dataRoot),
    ]);
  } catch {
    return null;
  }
}

/** Encodes a whole number of 32 bits as a compact integer of SCALE. */
function compact(value: number): Buffer {
  const mode = [2 ** 6, 2 ** 14, 2 ** 30].filter((end) => value >= end).length;
  const bytes = Buffer.alloc([1, 2, 4, 5][mode] as number);
  bytes.writeUIntLE(value * (mode === 3 ? 256 : 4) + mode, 0, bytes.length);
  return bytes;
}

function fromHex(hex: string): Buffer {
  return Buffer.from(hex.slice(2), 'hex');
}
