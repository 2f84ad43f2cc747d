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
    return encode(header as Header);
  } catch {
    return null;
  }
}

function encode({ digest: { logs }, extension, ...header }: Header): Buffer {
  const { appLookup, commitment } = extension.V3;
  return Buffer.concat([
    fromHex(header.parentHash),
    compact(Number(header.number)),
    fromHex(header.stateRoot),
    fromHex(header.extrinsicsRoot),
    ...[compact(logs.length), ...logs.map(fromHex)],
    ...[V3, compact(appLookup.size), compact(appLookup.index.length)],
    ...appLookup.index.flatMap(({ appId, start }) => [compact(appId), compact(start)]),
    ...[compact(commitment.rows), compact(commitment.cols)],
    ...[compact(commitment.commitment.length), Uint8Array.from(commitment.commitment)],
    fromHex(commitment.dataRoot),
  ]);
}

/** Encodes a whole number of 32 bits as a compact integer of SCALE. */
function compact(value: number): Buffer {
  const [length, encoded] =
    value < 2 ** 6
      ? [1, value * 4]
      : value < 2 ** 14
        ? [2, value * 4 + 1]
        : value < 2 ** 30
          ? [4, value * 4 + 2]
          : [5, value * 256 + 3];
  const bytes = Buffer.alloc(length);
  bytes.writeUIntLE(encoded, 0, length);
  return bytes;
}

function fromHex(hex: string): Buffer {
  return Buffer.from(hex.slice(2), 'hex');
}
