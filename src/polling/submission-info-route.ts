import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { operations, problemResponses, sendProblem, setRetryAfter } from '../http/problems.ts';
import type { TypedServer } from '../http/typed-server.ts';
import { submissionIdSchema } from '../submissions/track-request.ts';
import type { CachedLookup, LookupResult } from './on-demand-polls.ts';
import type { Watcher } from './watcher.ts';

const envelopeSchema = z
  .looseObject({
    id: z.string().optional(),
    state: z.string(),
    error: z.unknown(),
    data: z.looseObject({}).nullable().optional(),
  })
  .describe("The upstream's own response, unchanged")
  .meta({ id: 'UpstreamSubmission' });

const OPERATIONS = operations('submissions', {
  getSubmissionInfo: {
    summary: "Get a submission in the upstream's own format",
    description:
      'A finalized tracked submission is read from the ledger. For an open one, a response of the last few seconds is ' +
      'reused, and concurrent callers share one request to the upstream. Failures are problem documents with an `error` ' +
      'member, as in the upstream interface.',
    querystring: z.strictObject({
      submission_id: submissionIdSchema,
      upstream: z
        .string()
        .max(32)
        .optional()
        .describe('Name of a configured upstream; "default" if absent'),
    }),
    response: { 200: envelopeSchema, ...problemResponses(404, 502, 504) },
  },
});

/** Registers the upstream's own endpoint, so that its clients only need another base address. */
export function registerSubmissionInfo(
  app: TypedServer,
  deps: { lookup: CachedLookup; watcher: Watcher },
): void {
  app.get(
    '/v1/get_submission_info',
    {
      config: { hasErrorMember: true, roles: ['service', 'operator'] },
      schema: OPERATIONS.getSubmissionInfo,
    },
    async (request, reply) => {
      const { submission_id, upstream = 'default' } = request.query;
      if (!deps.watcher.hasUpstream(upstream))
        return sendProblem(
          reply,
          400,
          `query upstream: no upstream is named ${JSON.stringify(upstream)}`,
        );
      return send(reply, await deps.lookup.lookUp(submission_id, upstream));
    },
  );
}

function send(reply: FastifyReply, result: LookupResult): FastifyReply {
  switch (result.kind) {
    case 'envelope':
      // The text itself, because parsing would lose precision of large numbers.
      return reply
        .type('application/json; charset=utf-8')
        .serializer((text: string) => text)
        .send(result.text);
    case 'not_found':
      return sendProblem(reply, 404, result.error);
    case 'rejected':
      return sendProblem(reply, 400, result.error);
    case 'failed': {
      setRetryAfter(reply, result.retryAfterMs);
      const status = { upstream: 502, timeout: 504, busy: 503 } as const;
      return sendProblem(reply, status[result.reason], result.error);
    }
    default:
      return result satisfies never;
  }
}
