import {
  createHeader,
  dataRootOf,
  type Header,
  hashOfHeader,
  leafOf,
} from '../../../src/sandbox/chain/header.ts';

/**
 * A block as a node sends it, with its hash. `data`: of its direct calls of submit_data, in their
 * order, by default none. `dataRoot`: 64 digits, by default that of the data.
 */
export function blockOf(
  number: number,
  extrinsics: readonly Uint8Array[],
  { data = [], dataRoot }: { data?: readonly Uint8Array[]; dataRoot?: string } = {},
) {
  const bytes = data.reduce((sum, one) => sum + one.length, 0);
  const header: Header = createHeader('test', number, {
    parentHash: '1'.repeat(64),
    dataRoot: dataRoot ?? dataRootOf(data.map(leafOf)),
    dataBytes: bytes,
  });
  const json = extrinsics.map((one) => JSON.stringify(`0x${Buffer.from(one).toString('hex')}`));
  return {
    hash: `0x${hashOfHeader(header)}`,
    header,
    message: { block: { header, extrinsics: Buffer.from(json.join(',')) } },
  };
}
