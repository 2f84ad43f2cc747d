import { z } from 'zod';
import { siblingsOf, toHex } from './data-root.ts';
import type { ProvenBlock } from './proof-store.ts';

const hexSchema = z.string().regex(/^0x(?:[0-9a-f]{2})*$/);
const hashSchema = z.string().regex(/^0x[0-9a-f]{64}$/);
const countSchema = z.int().min(0).max(0xffff_ffff);

const headerOf = <Commitment extends z.ZodType>(commitment: Commitment) =>
  z.object({
    parentHash: hashSchema,
    number: z.string().regex(/^0x(?:0|[1-9a-f][0-9a-f]{0,7})$/),
    stateRoot: hashSchema,
    extrinsicsRoot: hashSchema,
    digest: z.object({ logs: z.array(hexSchema) }),
    extension: z.object({
      V3: z.object({
        appLookup: z.object({
          size: countSchema,
          index: z.array(z.object({ appId: countSchema, start: countSchema })),
        }),
        commitment: z.object({
          ...{ rows: countSchema, cols: countSchema, commitment, dataRoot: hashSchema },
        }),
      }),
    }),
  });

/** A header as nodes send it: the commitment is a list of bytes. */
export const nodeHeaderSchema = headerOf(
  z.union([
    hexSchema,
    z.array(z.int().min(0).max(255)).transform((list) => toHex(Uint8Array.from(list))),
  ]),
);

/** For the data 0xabcd, which are alone in their block. */
const EXAMPLE = {
  block_number: 1462797,
  block_hash: '0x4fae2570af81c02453514a8b24db3352cd29a1b6e2fb0ef1ad97e67f6b5612ea',
  header: {
    parentHash: '0xff483e972a04a9a62bb4b7d04ae403c615604e4090521ecc5bb7af67f71be09c',
    number: '0x16520d',
    stateRoot: '0x69e39af32bd0cc2d5f8ad822a3afcd7fe8d7211e4ca7c42654cdbda7a9b74516',
    extrinsicsRoot: '0x4f812d38ede2df35b4470f878d10e7a6d3894653d2c698dc02c0fae914cf2add',
    digest: {
      logs: [],
    },
    extension: {
      V3: {
        appLookup: {
          size: 1,
          index: [],
        },
        commitment: {
          rows: 1,
          cols: 4,
          commitment: '0x',
          dataRoot: '0xf1f399f7e0d8c8ed712df0c21b4ec78f3b8533f1c3d0215e4023e1b7c80bfd91',
        },
      },
    },
  },
  data_root: '0xf1f399f7e0d8c8ed712df0c21b4ec78f3b8533f1c3d0215e4023e1b7c80bfd91',
  bridge_root: '0x0000000000000000000000000000000000000000000000000000000000000000',
  leaf: '0xdbe576b4818846aa77e82f4ed5fa78f92766b141f282d36703886d196df39322',
  index: 0,
  siblings: [],
};

export const proofSchema = z
  .object({
    block_number: z.int(),
    block_hash: hashSchema.describe('BLAKE2b-256 hash of the header in SCALE'),
    header: headerOf(hexSchema)
      .describe('The header of the block, as nodes of the chain name its fields')
      .meta({ id: 'BlockHeader' }),
    data_root: hashSchema.describe(
      'Keccak-256 hash of the root of the submitted data and of `bridge_root`; the header has it',
    ),
    bridge_root: hashSchema.describe('Root of the bridge messages; zeros if there are none'),
    leaf: hashSchema.describe('Keccak-256 hash of the data'),
    index: z.int().describe('Position of the leaf, from 0'),
    siblings: z
      .array(hashSchema)
      .describe('Neighbours of the hash of the leaf and of the nodes above it, from the bottom'),
  })
  .describe('Proof that a block contains the data of a submission')
  .meta({ id: 'Proof', examples: [EXAMPLE] });

export type ProofBody = z.output<typeof proofSchema>;

/** Returns the proof for the leaf at an index. Throws for a damaged header. */
export function toProofBody(block: ProvenBlock, index: number): ProofBody {
  const header = headerOf(hexSchema).parse(JSON.parse(block.header));
  return {
    block_number: Number(header.number),
    block_hash: block.hash,
    header,
    data_root: block.dataRoot,
    bridge_root: block.bridgeRoot,
    leaf: toHex(block.leaves[index] as Uint8Array),
    index,
    siblings: siblingsOf(block.leaves, index),
  };
}
