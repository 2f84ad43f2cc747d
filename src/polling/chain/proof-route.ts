import { z } from 'zod';
import { operations, problemResponses, sendProblem } from '../../http/problems.ts';
import type { TypedServer } from '../../http/typed-server.ts';
import { canonicalId } from '../../submissions/submission.ts';
import type { SubmissionQueries } from '../../submissions/submission-queries.ts';
import { submissionIdSchema } from '../../submissions/track-request.ts';
import { proofSchema, toProofBody } from './proof-body.ts';
import type { ProofStore } from './proof-store.ts';

const OPERATIONS = operations('submissions', {
  getProof: {
    summary: 'Get the proof that a block contains the data of a submission',
    description:
      'Exists while `data_root` of the submission is not null: the upstream has the setting `chain.verify_data`, and the chain has confirmed the submission. `verifyProof` of the client and `dawatch proof --verify` check it offline.',
    params: z.object({ id: submissionIdSchema }),
    response: { 200: proofSchema, ...problemResponses(404) },
  },
});

export function registerProof(
  app: TypedServer,
  { ledger }: { ledger: { submissions: SubmissionQueries; proofs: ProofStore } },
): void {
  app.get(
    '/v1/submissions/:id/proof',
    { config: { roles: ['service', 'operator'] }, schema: OPERATIONS.getProof },
    async (request, reply) => {
      const id = canonicalId(request.params.id);
      const submission = ledger.submissions.get(id);
      const { proof = null, chain, chainReason } = submission ?? {};
      const block = proof && ledger.proofs.find(proof.block);
      if (proof && block) return toProofBody(block, proof.leaf);
      const reason =
        chain === 'confirmed'
          ? 'its upstream has no verify_data'
          : (chainReason ?? 'it is not final');
      const detail = submission ? `${id} has no proof: ${reason}` : `${id} was never tracked here`;
      return sendProblem(reply, { status: 404, detail });
    },
  );
}
