import type { FastifyInstance, FastifyReply } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { STATUSES, type Submission } from '../monitor/submission.ts';
import { submissionIdSchema, trackBodySchema } from '../monitor/track-request.ts';
import { cursorSchema, fromCursor, toCursor } from './cursor.ts';
import type { Submissions } from './ports.ts';
import { problemAnswer, sendProblem } from './problems.ts';
import {
  submissionListSchema,
  submissionSchema,
  submissionWithHistorySchema,
  toHistoryBody,
  toSubmissionBody,
  trackedSchema,
} from './shapes.ts';
import { wholeNumber } from './whole-number.ts';

/** Ten thousand ids of 128 characters, and metadata. */
const BODY_LIMIT_BYTES = 2 * 1024 * 1024;
/** Below the 300 s after which common HTTP clients give up on an answer. */
const MAX_WAIT_S = 240;

const params = z.object({ id: submissionIdSchema });
const problems = { 400: problemAnswer, 401: problemAnswer, 503: problemAnswer };

export function registerSubmissions(instance: FastifyInstance, deps: { submissions: Submissions }): void {
  const { submissions } = deps;
  const app = instance.withTypeProvider<ZodTypeProvider>();
  const body = (submission: Submission) => toSubmissionBody(submission, submissions.deadlineAt(submission));
  const closing = new AbortController();
  instance.addHook('preClose', async () => closing.abort());

  app.post(
    '/v1/submissions',
    {
      bodyLimit: BODY_LIMIT_BYTES,
      schema: {
        operationId: 'trackSubmissions',
        summary: 'Track one submission or many',
        description: 'Idempotent: what is tracked already stays as it is. Answered once it is on the disk.',
        tags: ['submissions'],
        body: trackBodySchema,
        response: {
          202: trackedSchema,
          ...problems,
          409: problemAnswer,
          413: problemAnswer,
          415: problemAnswer,
          507: problemAnswer,
        },
      },
    },
    async (request, reply) => {
      const result = submissions.track(request.body);
      switch (result.kind) {
        case 'invalid':
          return sendProblem(reply, {
            status: 400,
            detail: `body /${result.field}: ${result.reason}`,
            errors: [{ pointer: `/${result.field}`, detail: result.reason }],
          });
        case 'conflict': {
          const { submissionId, upstream } = result.submission;
          const detail = `${submissionId} is tracked at the upstream ${upstream} already; nothing was taken`;
          return sendProblem(reply, { status: 409, detail });
        }
        case 'late':
          return sendProblem(reply, {
            status: 400,
            detail: 'body /deadline: the deadline is not in the future',
            errors: [{ pointer: '/deadline', detail: 'the deadline is not in the future' }],
          });
        case 'tracked': {
          const accepted = result.submissions.filter(({ isNew }) => isNew).length;
          return reply.code(202).send({
            accepted,
            already_tracked: result.submissions.length - accepted,
            submissions: result.submissions.map(({ submission }) => body(submission)),
          });
        }
        default:
          return result satisfies never;
      }
    },
  );

  app.get(
    '/v1/submissions',
    {
      schema: {
        operationId: 'listSubmissions',
        summary: 'List submissions, newest first',
        tags: ['submissions'],
        querystring: z.strictObject({
          status: z
            .enum(STATUSES)
            .optional()
            .describe('Only those')
            .meta({ examples: ['pending'] }),
          limit: wholeNumber({ min: 1, max: 1_000 }).default('100'),
          cursor: cursorSchema.optional(),
        }),
        response: { 200: submissionListSchema, ...problems },
      },
    },
    async ({ query }) => {
      const before = query.cursor === undefined ? undefined : fromCursor(query.cursor);
      const page = submissions.list({ status: query.status, limit: Number(query.limit), before });
      return {
        submissions: page.submissions.map(body),
        next_cursor: page.nextBefore === null ? null : toCursor(page.nextBefore),
      };
    },
  );

  app.get(
    '/v1/submissions/:id',
    {
      schema: {
        operationId: 'getSubmission',
        summary: 'One submission with its history',
        tags: ['submissions'],
        params,
        response: { 200: submissionWithHistorySchema, ...problems, 404: problemAnswer },
      },
    },
    async ({ params: { id } }, reply) => {
      const submission = submissions.get(id);
      if (!submission) return notTracked(reply, id);
      return reply.send({ ...body(submission), history: submissions.history(id).map(toHistoryBody) });
    },
  );

  app.get(
    '/v1/submissions/:id/wait',
    {
      schema: {
        operationId: 'waitForSubmission',
        summary: 'Wait until a submission is final',
        description: 'Answers as soon as it is final, or after timeout_s with the submission as it is then.',
        tags: ['submissions'],
        params,
        querystring: z.strictObject({ timeout_s: wholeNumber({ min: 0, max: MAX_WAIT_S }).default('30') }),
        response: { 200: submissionSchema, ...problems, 404: problemAnswer },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const signal = AbortSignal.any([closing.signal, goneSignal(reply)]);
      await submissions.waitUntilFinal(id, Number(request.query.timeout_s) * 1_000, signal);
      const submission = submissions.get(id);
      return submission ? reply.send(body(submission)) : notTracked(reply, id);
    },
  );

  app.delete(
    '/v1/submissions/:id',
    {
      schema: {
        operationId: 'cancelSubmission',
        summary: 'Stop tracking a submission',
        description: 'It ends as cancelled; one that is final already stays as it is.',
        tags: ['submissions'],
        params,
        response: { 200: submissionSchema, ...problems, 404: problemAnswer, 507: problemAnswer },
      },
    },
    async ({ params: { id } }, reply) => {
      const submission = submissions.cancel(id);
      return submission ? reply.send(body(submission)) : notTracked(reply, id);
    },
  );
}

function notTracked(reply: FastifyReply, submissionId: string): FastifyReply {
  return sendProblem(reply, { status: 404, detail: `${submissionId} was never tracked here` });
}

/** Aborts when the client hangs up: nobody waits for an answer then. */
function goneSignal(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort());
  return gone.signal;
}
