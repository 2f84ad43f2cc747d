import { z } from 'zod';
import { hashPair } from '../../client/proof.ts';
import { operations, problemResponses, sendProblem } from '../../http/problems.ts';
import type { TypedServer } from '../../http/typed-server.ts';
import { DamagedRowError } from '../../lib/json.ts';
import { dataOf } from '../../submissions/classify.ts';
import { canonicalId, type ProvenBlock } from '../../submissions/submission.ts';
import type { SubmissionQueries } from '../../submissions/submission-queries.ts';
import { submissionIdSchema } from '../../submissions/track-request.ts';
import { levelsOf, toHex } from './data-root.ts';

const LEAF_BYTES = 32;

const hashSchema = z.string().regex(/^0x[0-9a-f]{64}$/);
const proofSchema = z
  .object({
    block_number: z.int(),
    block_hash: hashSchema.describe('BLAKE2b-256 hash of the header'),
    header: z.string().describe('In SCALE; it ends with the data root'),
    data_root: hashSchema.describe(
      'Keccak-256 hash of the root of the submitted data and of `bridge_root`',
    ),
    bridge_root: hashSchema.describe('Root of the bridge messages; zeros if there are none'),
    leaf: hashSchema.describe('Keccak-256 hash of the data'),
    index: z.int().describe('Position of the leaf, from 0'),
    siblings: z
      .array(hashSchema)
      .describe('Neighbours of the hash of the leaf and of the nodes above it, from the bottom'),
  })
  .describe('Proof that a block contains the data of a submission')
  .meta({ id: 'Proof' });

type ProofBody = z.output<typeof proofSchema>;

const OPERATIONS = operations('submissions', {
  getProof: {
    summary: 'Get the proof that a block contains the data of a submission',
    description:
      'Exists while `data_root` of the submission is not null. `verifyProof` of the client and `dawatch proof --verify` check it offline.',
    params: z.object({ id: submissionIdSchema }),
    response: { 200: proofSchema, ...problemResponses(404) },
  },
});

export function registerProof(
  app: TypedServer,
  { ledger: { submissions } }: { ledger: { submissions: SubmissionQueries } },
): void {
  app.get(
    '/v1/submissions/:id/proof',
    { config: { roles: ['service', 'operator'] }, schema: OPERATIONS.getProof },
    async (request, reply) => {
      const id = canonicalId(request.params.id);
      const submission = submissions.get(id);
      const { proof = null, chain, chainReason, envelope = null } = submission ?? {};
      const block = proof && submissions.provenBlock(proof.blockHash);
      if (proof && block) {
        const { block_number } = dataOf(envelope) ?? {};
        return toProofBody(block, { index: proof.leaf, block_number: Number(block_number) });
      }
      const reason =
        chain === 'confirmed'
          ? 'it was confirmed without verify_data'
          : (chainReason ?? 'the chain was not asked for its block');
      const detail = submission ? `${id} has no proof: ${reason}` : `${id} was never tracked here`;
      return sendProblem(reply, 404, detail);
    },
  );
}

/** Throws DamagedRowError. */
export function toProofBody(
  { hash, header, dataRoot, bridgeRoot, leaves: bytes }: ProvenBlock,
  { index, block_number }: Pick<ProofBody, 'index' | 'block_number'>,
): ProofBody {
  const leaves = Array.from({ length: Math.floor(bytes.length / LEAF_BYTES) }, (_, at) =>
    bytes.subarray(at * LEAF_BYTES, (at + 1) * LEAF_BYTES),
  );
  const leaf = leaves[index];
  const levels = levelsOf(leaves);
  const [root] = levels.pop() ?? [];
  const bridge = Buffer.from(bridgeRoot.slice(2), 'hex');
  if (!leaf || !root || toHex(hashPair(root, bridge)) !== dataRoot)
    throw new DamagedRowError(`the proof block ${hash}`, 'leaves');
  const siblings = levels.map((level, height) => toHex(level[(index >> height) ^ 1] as Uint8Array));
  return {
    ...{ block_number, block_hash: hash, header, data_root: dataRoot, bridge_root: bridgeRoot },
    ...{ leaf: toHex(leaf), index, siblings },
  };
}
