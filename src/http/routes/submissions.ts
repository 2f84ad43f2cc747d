import type { FastifyBaseLogger, FastifyInstance, FastifyReply } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { type ReportUnreadable, unreadableReporter } from '../../domain/stored.ts';
import { canonicalId, STATUSES, Status, type Submission } from '../../domain/submission.ts';
import { submissionIdSchema, type TrackBody, trackBodySchema } from '../../domain/track-request.ts';
import { fromCursor, fromIdCursor, toCursor, toIdCursor } from '../cursor.ts';
import type { Admission } from '../load/admission.ts';
import { RequestBatcher } from '../load/request-batcher.ts';
import { clientOf, type Submissions, type TrackRequestResult } from '../ports.ts';
import { problemResponse, sendProblem } from '../problems.ts';
import { logOf } from '../request-log.ts';
import { wholeNumber } from '../whole-number.ts';
import {
  submissionListSchema,
  submissionSchema,
  submissionWithHistorySchema,
  toHistoryBody,
  toSubmissionBody,
  trackedSchema,
} from './submission-body.ts';

/** Ten thousand ids of 128 characters, and metadata. */
const BODY_LIMIT_BYTES = 2 * 1024 * 1024;
/** Of 128 characters as base64, and what kind of cursor it is. */
const MAX_CURSOR_CHARS = 180;
/** Below the 300 s after which common HTTP clients give up on an answer. */
const MAX_WAIT_S = 240;

const params = z.object({ id: submissionIdSchema });
const listQuerySchema = z
  .strictObject({
    status: z
      .enum(STATUSES)
      .optional()
      .describe('Only those')
      .meta({ examples: ['pending'] }),
    prefix: submissionIdSchema
      .optional()
      .describe('Only those whose ids begin so, UUIDs in any case; not together with status'),
    limit: wholeNumber({ min: 1, max: 1_000 }).default('100'),
    cursor: z
      .string()
      .max(MAX_CURSOR_CHARS)
      .optional()
      .describe('`next_cursor` of the page before')
      .meta({ examples: [toCursor(4_711)] }),
  })
  .refine(({ status, prefix }) => status === undefined || prefix === undefined, {
    path: ['prefix'],
    error: 'can not be combined with status',
  })
  .refine(
    ({ prefix, cursor }) =>
      cursor === undefined || (prefix === undefined ? fromCursor : fromIdCursor)(cursor) !== undefined,
    {
      path: ['cursor'],
      error: 'is no cursor that this list gave',
    },
  );

const problems = { 400: problemResponse, 401: problemResponse, 503: problemResponse };

export function registerSubmissions(
  instance: FastifyInstance,
  deps: {
    submissions: Submissions;
    admission: Admission<TrackBody, TrackRequestResult>;
    onUnreadable: ReportUnreadable;
  },
): void {
  const { submissions, admission } = deps;
  const app = instance.withTypeProvider<ZodTypeProvider>();
  const reported = unreadableReporter(deps.onUnreadable, 'submission');
  const body = (submission: Submission) =>
    reported(submission.submissionId, toSubmissionBody(submission, submissions.deadlineAt(submission)));
  // Where the file is damaged, one may be unreadable and the others not.
  const reading = new RequestBatcher(
    (ids: readonly string[]) => submissions.getWithHistory(ids),
    () => false,
  );
  const cancelling = new RequestBatcher((ids: readonly string[]) => {
    readFirst();
    return submissions.cancel(ids);
  });
  /** What was asked for before something is written must not be answered with it. */
  const readFirst = () => reading.flush();
  const closing = new AbortController();
  instance.addHook('preClose', async () => closing.abort());

  app.post(
    '/v1/submissions',
    {
      bodyLimit: BODY_LIMIT_BYTES,
      onRequest: (request, reply, done) => admission.beforeBody(request, reply, done),
      preParsing: (request, reply, body, done) => admission.whileBody(request, reply, body, done),
      schema: {
        operationId: 'trackSubmissions',
        summary: 'Track one submission or many',
        description:
          'Idempotent: what is tracked already stays as it is. Answered once it is on the disk. When too many ids wait for ' +
          'that, 503 with Retry-After: nothing of the request was taken.',
        tags: ['submissions'],
        body: trackBodySchema,
        response: {
          202: trackedSchema,
          ...problems,
          409: problemResponse,
          413: problemResponse,
          415: problemResponse,
          507: problemResponse,
        },
      },
    },
    async (request, reply) => {
      const { body: wanted } = request;
      readFirst();
      const ids = wanted.submission_ids?.length ?? 1;
      const result = await admission.take(wanted, ids, clientOf(request.caller)).finally(request.bodyDone);
      if (!result) return admission.shed('tracking', request, reply);
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
          logTracked(request, accepted, result.submissions);
          reply.code(202);
          return {
            accepted,
            already_tracked: result.submissions.length - accepted,
            submissions: result.submissions.map(({ submission }) => body(submission)),
          };
        }
        default:
          return result satisfies never;
      }
    },
  );

  app.get(
    '/v1/submissions',
    {
      config: { isExpensive: true },
      schema: {
        operationId: 'listSubmissions',
        summary: 'List submissions, newest first',
        description: 'With `prefix` in the order of the ids instead, so that finding one among millions costs nothing.',
        tags: ['submissions'],
        querystring: listQuerySchema,
        response: { 200: submissionListSchema, ...problems },
      },
    },
    async ({ query: { status, prefix, limit: text, cursor = '' } }) => {
      const limit = Number(text);
      if (prefix !== undefined) {
        const page = submissions.findByPrefix({ prefix, limit, after: fromIdCursor(cursor) });
        const next_cursor = page.nextAfter === null ? null : toIdCursor(page.nextAfter);
        return { submissions: page.submissions.map(body), next_cursor };
      }
      const page = submissions.list({ status, limit, before: fromCursor(cursor) });
      const next_cursor = page.nextBefore === null ? null : toCursor(page.nextBefore);
      return { submissions: page.submissions.map(body), next_cursor };
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
        response: { 200: submissionWithHistorySchema, ...problems, 404: problemResponse },
      },
    },
    async ({ params: { id } }, reply) => {
      const found = await reading.add(id);
      if (!found) return notTracked(reply, id);
      return {
        ...body(found.submission),
        history: found.history.map((entry) => reported(found.submission.submissionId, toHistoryBody(entry))),
      };
    },
  );

  app.get(
    '/v1/submissions/:id/wait',
    {
      config: { staysOpen: true },
      schema: {
        operationId: 'waitForSubmission',
        summary: 'Wait until a submission is final',
        description: 'Answers as soon as it is final, or after timeout_s with the submission as it is then.',
        tags: ['submissions'],
        params,
        querystring: z.strictObject({ timeout_s: wholeNumber({ min: 0, max: MAX_WAIT_S }).default('30') }),
        response: { 200: submissionSchema, ...problems, 404: problemResponse },
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
        response: { 200: submissionSchema, ...problems, 404: problemResponse, 507: problemResponse },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const submission = await cancelling.add(id);
      if (submission?.status === Status.cancelled)
        logOf(request).info(
          { submission_id: submission.submissionId, status: submission.status },
          'submission.cancelled',
        );
      return submission ? reply.send(body(submission)) : notTracked(reply, id);
    },
  );
}

function logTracked(
  request: { log: FastifyBaseLogger },
  accepted: number,
  tracked: readonly { submission: Submission }[],
): void {
  const log = logOf(request);
  if (!log.isLevelEnabled('debug')) return;
  const [only] = tracked;
  const single = only && tracked.length === 1 ? { submission_id: only.submission.submissionId } : {};
  log.debug({ accepted, already_tracked: tracked.length - accepted, ...single }, 'submissions.tracked');
}

function notTracked(reply: FastifyReply, submissionId: string): FastifyReply {
  return sendProblem(reply, { status: 404, detail: `${canonicalId(submissionId)} was never tracked here` });
}

/** Aborts when the client hangs up: nobody waits for an answer then. */
function goneSignal(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort());
  return gone.signal;
}
