import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { operations, sendProblem } from '../http/problems.ts';
import type { TypedServer } from '../http/typed-server.ts';
import {
  CURSOR_REFUSAL,
  checkRange,
  cursorText,
  fromCursor,
  nextCursorSchema,
  pageLimit,
  SEVERAL,
  severalOf,
  timeParameter,
  toCursor,
} from '../http/typed-server.ts';
import type { Position } from '../ledger/page.ts';
import { tryParse } from '../lib/json.ts';
import {
  orderOf,
  SEARCHABLE,
  type SubmissionFilter,
  type SubmissionOrder,
  type SubmissionSearch,
  unsearchable,
} from './search.ts';
import {
  CHAIN_VERDICTS,
  canonicalId,
  STATUSES,
  SUBMISSION_ID_PATTERN,
  type Submission,
} from './submission.ts';
import { type SubmissionBody, submissionListSchema, submissionSchema } from './submission-body.ts';
import type { SubmissionQueries } from './submission-queries.ts';
import { submissionIdSchema } from './track-request.ts';

/** A cursor with an id of 128 characters, as JSON in base64. */
const MAX_CURSOR_CHARS = 400;
const MAX_METADATA = 10;

/** An object as JSON, or parameters `metadata.<name>`, which parseQuery collects. */
const metadataSchema = z
  .unknown()
  .transform((given, context): Record<string, string> => {
    const fields = typeof given === 'string' ? tryParse(given) : given;
    const reason = metadataRefusal(fields);
    if (reason === undefined)
      return Object.fromEntries(
        Object.entries(fields as object).map(([name, value]) => [name, toText(value)]),
      );
    context.addIssue({ code: 'custom', message: reason });
    return z.NEVER;
  })
  .describe(
    `Only submissions whose metadata has these values: an object as JSON, or one parameter \`metadata.<name>=<value>\` per value, up to ${MAX_METADATA}. Values are compared as text, so that 4711 finds the number and the text. Only values at the top level are found: text of up to ${SEARCHABLE.valueBytes} bytes, numbers, true, false and null, the first ${SEARCHABLE.names} of a submission`,
  )
  .meta({ type: 'string', examples: ['{"order":4711}'] });

const parameters = {
  status: severalOf(STATUSES)
    .optional()
    .describe(
      `Only submissions in these statuses, separated by commas or repeated: ${STATUSES.join(', ')}`,
    )
    .meta({ ...SEVERAL, examples: ['failed,expired'] }),
  chain: severalOf(CHAIN_VERDICTS)
    .optional()
    .describe(
      `Only submissions about which the chain says this, separated by commas or repeated: ${CHAIN_VERDICTS.join(', ')}`,
    )
    .meta({ ...SEVERAL, examples: ['contradicted'] }),
  upstream: z.string().max(32).optional().describe('Only submissions of this upstream'),
  metadata: metadataSchema.optional(),
  tracked_since: timeParameter
    .optional()
    .describe('Only submissions tracked at this time or later'),
  tracked_until: timeParameter.optional().describe('Only submissions tracked before this time'),
  ended_since: timeParameter
    .optional()
    .describe('Only submissions that became final at this time or later'),
  ended_until: timeParameter
    .optional()
    .describe('Only submissions that became final before this time'),
  prefix: submissionIdSchema.optional().describe('Only ids with this prefix; UUIDs in any case'),
  stuck: z
    .literal('true')
    .transform(() => true as const)
    .optional()
    .describe('Only open submissions that are reported as stuck'),
  cursor: cursorText(MAX_CURSOR_CHARS).optional(),
};

type Query = z.output<z.ZodObject<typeof parameters>>;

function check(query: Query, context: z.core.$RefinementCtx<Query>): void {
  const { tracked_since, tracked_until, ended_since, ended_until, cursor } = query;
  checkRange(context, { since: tracked_since, until: tracked_until, name: 'tracked_until' });
  checkRange(context, { since: ended_since, until: ended_until, name: 'ended_until' });
  if (cursor !== undefined && positionOf(query) === undefined)
    context.addIssue({ code: 'custom', path: ['cursor'], message: CURSOR_REFUSAL });
}

const countQuerySchema = z.strictObject(parameters).superRefine(check);
const listQuerySchema = z.strictObject({ ...parameters, limit: pageLimit }).superRefine(check);

function submissionFilterOf(query: Query): SubmissionFilter {
  return {
    statuses: query.status,
    chain: query.chain,
    upstream: query.upstream,
    metadata: query.metadata,
    trackedSince: query.tracked_since,
    trackedUntil: query.tracked_until,
    endedSince: query.ended_since,
    endedUntil: query.ended_until,
    prefix: query.prefix,
    stuck: query.stuck,
  };
}

const byTime = z.tuple([z.int(), z.int()]);
/** The position by id stays valid when the submission is deleted. */
const POSITIONS: Record<SubmissionOrder, z.ZodType<Position>> = {
  newest: z.tuple([z.int()]),
  tracked: byTime,
  ended: byTime,
  id: z.tuple([z.string().regex(SUBMISSION_ID_PATTERN)]),
};

/** Returns undefined without a cursor, or for one of a list with another order. */
function positionOf({ cursor, ...query }: Query): Position | undefined {
  const order = orderOf(submissionFilterOf(query));
  return cursor === undefined ? undefined : fromCursor(cursor, order, POSITIONS[order]);
}

function cursorOf(filter: SubmissionFilter, next: Position | null): string | null {
  return next && toCursor(orderOf(filter), next);
}

function metadataRefusal(fields: unknown): string | undefined {
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields))
    return 'must be written as metadata.order=4711, or be an object as JSON like {"order":4711}';
  const entries = Object.entries(fields);
  if (entries.length === 0 || entries.length > MAX_METADATA)
    return `must have 1 to ${MAX_METADATA} names`;
  for (const [name, value] of entries) {
    const quoted = JSON.stringify(name.slice(0, 40));
    if (Array.isArray(value)) return `${quoted} must be given once, as one value`;
    if (typeof value === 'object' && value !== null)
      return `${quoted} must be a string, a number, true, false or null`;
    const reason = unsearchable(name, toText(value));
    if (reason !== undefined) return reason;
  }
  return undefined;
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

const MAX_LOOKUP_IDS = 1_000;
/** A thousand ids of 128 characters. */
const LOOKUP_BODY_BYTES = 256 * 1024;

const countSchema = z
  .object({
    count: z
      .int()
      .describe(
        'Number of submissions. If `next_cursor` is not null, only of those that were examined',
      ),
    next_cursor: nextCursorSchema.describe(
      'Send it as `cursor` to count the rest, and add the numbers; null: nothing is left',
    ),
  })
  .describe('A number of submissions')
  .meta({ id: 'SubmissionCount' });

const lookupSchema = z
  .strictObject({
    submission_ids: z
      .array(submissionIdSchema)
      .min(1)
      .max(MAX_LOOKUP_IDS)
      .describe(`Up to ${MAX_LOOKUP_IDS} ids`),
  })
  .meta({
    id: 'LookupRequest',
    examples: [{ submission_ids: ['6df2c1ce-b11a-4828-b2a6-62bf5b7cb325'] }],
  });

export const foundSchema = z
  .object({
    submissions: z
      .array(submissionSchema)
      .describe('In the order of the request, without duplicates'),
    not_found: z.array(z.string()).describe('Ids that were never tracked here'),
    remaining: z
      .array(z.string())
      .describe(
        'Ids that were not looked up, because the response would exceed some MiB. Send them again',
      ),
  })
  .describe('The submissions of these ids')
  .meta({ id: 'FoundSubmissions' });

const OPERATIONS = operations('submissions', {
  listSubmissions: {
    summary: 'List submissions, newest first',
    description:
      'All conditions apply together. With `prefix` the list is ordered by id, else with `metadata` by acceptance, else with ' +
      '`ended_since` or `ended_until` by the time of the final status, else with `chain`, `status`, `tracked_since` or ' +
      '`tracked_until` by the time of tracking. Pages may be short, even empty: continue until `next_cursor` is null.',
    querystring: listQuerySchema,
    response: { 200: submissionListSchema },
  },
  countSubmissions: {
    summary: 'Count submissions',
    description:
      'With the conditions of the list. If `next_cursor` is not null, `count` only contains the ' +
      'submissions that were examined. Counts without conditions, or by status alone, are always complete.',
    querystring: countQuerySchema,
    response: { 200: countSchema },
  },
  lookupSubmissions: {
    summary: 'Look up many submissions by id',
    description:
      'Returns the submissions without their histories, and the ids that are not tracked.',
    body: lookupSchema,
    response: { 200: foundSchema },
  },
});

/** `shown`: returns the body of a submission for the caller of a request. */
export function registerSubmissionSearch(
  app: TypedServer,
  deps: {
    ledger: { search: SubmissionSearch; submissions: SubmissionQueries };
    shown: (submission: Submission, request: FastifyRequest) => SubmissionBody;
  },
): void {
  const { search, submissions } = deps.ledger;
  const shownTo = (request: FastifyRequest) => (submission: Submission) =>
    deps.shown(submission, request);
  const isUnknown = (upstream: string | undefined) =>
    upstream !== undefined && !search.hasUpstream(upstream);

  app.get(
    '/v1/submissions',
    {
      config: { isExpensive: true, roles: ['service', 'operator'] },
      schema: OPERATIONS.listSubmissions,
    },
    async (request, reply) => {
      const { query } = request;
      if (isUnknown(query.upstream)) return unknownUpstream(reply, query.upstream);
      const filter = submissionFilterOf(query);
      const page = search.list({ ...filter, limit: Number(query.limit), after: positionOf(query) });
      return {
        submissions: page.submissions.map(shownTo(request)),
        next_cursor: cursorOf(filter, page.next),
      };
    },
  );

  // A path of its own, because every path below /v1/submissions is an id.
  app.get(
    '/v1/submission_count',
    {
      config: { isExpensive: true, roles: ['service', 'operator'] },
      schema: OPERATIONS.countSubmissions,
    },
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
      config: { isExpensive: true, roles: ['service', 'operator'] },
      schema: OPERATIONS.lookupSubmissions,
    },
    async (request) => {
      const { submission_ids } = request.body;
      const ids = [...new Map(submission_ids.map((id) => [canonicalId(id), id])).values()];
      const found = submissions.lookup(ids);
      const bodies = found.submissions.map(shownTo(request));
      return { submissions: bodies, not_found: found.notFound, remaining: found.remaining };
    },
  );
}

function unknownUpstream(reply: FastifyReply, name = ''): FastifyReply {
  const reason = `no upstream is named ${JSON.stringify(name)}`;
  const errors = [{ pointer: 'upstream', detail: reason }];
  return sendProblem(reply, 400, `query upstream: ${reason}`, errors);
}
