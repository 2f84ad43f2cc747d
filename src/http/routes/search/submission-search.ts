import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { canonicalId, type Submission } from '../../../domain/submission.ts';
import { submissionIdSchema } from '../../../domain/track-request.ts';
import type { Ledger } from '../../../ledger/ledger.ts';
import type { TypedServer } from '../../ports.ts';
import { operations, sendProblem } from '../../problems.ts';
import { nextCursorSchema } from '../../query.ts';
import {
  SUBMISSION_EXAMPLE,
  type SubmissionBody,
  submissionListSchema,
  submissionSchema,
  toTime,
} from '../submission-body.ts';
import { countQuerySchema, cursorOf, listQuerySchema, positionOf, submissionFilterOf } from './submission-filter.ts';

const MAX_LOOKUP_IDS = 1_000;
/** A thousand ids of 128 characters. */
const LOOKUP_BODY_BYTES = 256 * 1024;

const countSchema = z
  .object({
    count: z.int().describe('Number of submissions. If `next_cursor` is not null, only of those that were examined'),
    next_cursor: nextCursorSchema.describe(
      'Send it as `cursor` to count the rest, and add the numbers; null: nothing is left',
    ),
  })
  .describe('A number of submissions')
  .meta({ id: 'SubmissionCount', examples: [{ count: 42, next_cursor: null }] });

const lookupSchema = z
  .strictObject({
    submission_ids: z.array(submissionIdSchema).min(1).max(MAX_LOOKUP_IDS).describe(`Up to ${MAX_LOOKUP_IDS} ids`),
  })
  .meta({ id: 'LookupRequest', examples: [{ submission_ids: [SUBMISSION_EXAMPLE.submission_id, 'never-tracked'] }] });

export const foundSchema = z
  .object({
    submissions: z.array(submissionSchema).describe('In the order of the request, without duplicates'),
    not_found: z.array(z.string()).describe('Ids that were never tracked here'),
    remaining: z
      .array(z.string())
      .describe('Ids that were not looked up, because the response would exceed some MiB. Send them again'),
  })
  .describe('The submissions of these ids')
  .meta({
    id: 'FoundSubmissions',
    examples: [{ submissions: [SUBMISSION_EXAMPLE], not_found: ['never-tracked'], remaining: [] }],
  });

const OPERATIONS = operations('submissions', {
  listSubmissions: {
    summary: 'List submissions, newest first',
    description:
      'All conditions apply together. The newest is the one that was accepted last; with `tracked_since` or `tracked_until` the ' +
      'list is ordered by the time of tracking, with `ended_since` or `ended_until` by the time of the final status, and with ' +
      '`prefix` by id. A page takes a bounded time: it may have fewer entries than `limit`, even none, although more follow. ' +
      'Continue until `next_cursor` is null.',
    querystring: listQuerySchema,
    response: { 200: submissionListSchema },
  },
  countSubmissions: {
    summary: 'Count submissions',
    description:
      'With the conditions of the list. A response takes a bounded time: if `next_cursor` is not null, `count` only contains the ' +
      'submissions that were examined. Counts without conditions, or by status alone, are always complete.',
    querystring: countQuerySchema,
    response: { 200: countSchema },
  },
  lookupSubmissions: {
    summary: 'Look up many submissions by id',
    description: 'Returns the submissions without their histories, and the ids that are not tracked.',
    body: lookupSchema,
    response: { 200: foundSchema },
  },
});

/** Lists, counts and looks up submissions. `shown`: returns the body of a submission for the caller of a request. */
export function registerSubmissionSearch(
  app: TypedServer,
  deps: { ledger: Ledger; shown: (submission: Submission, request: Pick<FastifyRequest, 'caller'>) => SubmissionBody },
): void {
  const { search, submissions } = deps.ledger;
  const shownTo = (request: FastifyRequest) => (submission: Submission) => deps.shown(submission, request);
  const isUnknown = (upstream: string | undefined) => upstream !== undefined && !search.hasUpstream(upstream);

  app.get(
    '/v1/submissions',
    { config: { isExpensive: true, scopes: ['submissions:read'] }, schema: OPERATIONS.listSubmissions },
    async (request, reply) => {
      const { query } = request;
      if (isUnknown(query.upstream)) return unknownUpstream(reply, query.upstream);
      const filter = submissionFilterOf(query);
      const page = search.list({ ...filter, limit: Number(query.limit), after: positionOf(query) });
      return {
        submissions: page.submissions.map(shownTo(request)),
        next_cursor: cursorOf(filter, page.next),
        examined_to: page.examinedTo === null ? null : toTime(page.examinedTo),
      };
    },
  );

  // A path of its own, because every path below /v1/submissions is an id.
  app.get(
    '/v1/submission_count',
    { config: { isExpensive: true, scopes: ['submissions:read'] }, schema: OPERATIONS.countSubmissions },
    async ({ query }, reply) => {
      if (isUnknown(query.upstream)) return unknownUpstream(reply, query.upstream);
      const filter = submissionFilterOf(query);
      const { count, next } = search.count(filter, positionOf(query));
      return { count, next_cursor: cursorOf(filter, next) };
    },
  );

  app.post(
    '/v1/submissions/lookup',
    {
      bodyLimit: LOOKUP_BODY_BYTES,
      config: { isExpensive: true, scopes: ['submissions:read'] },
      schema: OPERATIONS.lookupSubmissions,
    },
    async (request) => {
      const { submission_ids } = request.body;
      const ids = [...new Map(submission_ids.map((id) => [canonicalId(id), id])).values()];
      const found = submissions.lookup(ids);
      const shown = found.submissions.map(shownTo(request));
      return { submissions: shown, not_found: found.notFound, remaining: found.remaining };
    },
  );
}

function unknownUpstream(reply: FastifyReply, name = ''): FastifyReply {
  const reason = `no upstream is named ${JSON.stringify(name)}`;
  const errors = [{ pointer: 'upstream', detail: reason }];
  return sendProblem(reply, { status: 400, detail: `query upstream: ${reason}`, errors });
}
