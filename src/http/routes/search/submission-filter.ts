import { z } from 'zod';
import { STATUSES } from '../../../domain/submission.ts';
import { submissionIdSchema } from '../../../domain/track-request.ts';
import { SEARCHABLE, unsearchable } from '../../../domain/tracking/searchable.ts';
import { MAX_SEARCH_CHARS } from '../../../domain/tracking/text-search.ts';
import type { Position } from '../../../ledger/file/bounded-search.ts';
import { orderOf, type SubmissionFilter } from '../../../ledger/submissions/search-sources.ts';
import {
  CURSOR_REFUSAL,
  checkRange,
  cursorText,
  fromCursor,
  fromIdCursor,
  fromTimeCursor,
  pageLimit,
  SEVERAL,
  severalOf,
  timeParameter,
  toCursor,
  toIdCursor,
  toTimeCursor,
} from '../../query.ts';

/** A cursor with an id of 128 characters, in base64. */
const MAX_CURSOR_CHARS = 180;
const MAX_METADATA = 10;

/** The parameter `metadata`: an object as JSON, or the parameters `metadata.<name>`, which parseQuery collects. */
const metadataSchema = z
  .unknown()
  .transform((given, context): Record<string, string> => {
    const fields = typeof given === 'string' ? parsedObject(given) : given;
    const reason = metadataRefusal(fields);
    if (reason === undefined) return Object.fromEntries(Object.entries(fields as object).map(toTexts));
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
    .describe(`Only submissions in these statuses, separated by commas or repeated: ${STATUSES.join(', ')}`)
    .meta({ ...SEVERAL, examples: ['failed,expired'] }),
  upstream: z.string().max(32).optional().describe('Only submissions of this upstream'),
  metadata: metadataSchema.optional(),
  tracked_since: timeParameter.optional().describe('Only submissions tracked at this time or later'),
  tracked_until: timeParameter.optional().describe('Only submissions tracked before this time'),
  ended_since: timeParameter.optional().describe('Only submissions that became final at this time or later'),
  ended_until: timeParameter.optional().describe('Only submissions that became final before this time'),
  prefix: submissionIdSchema.optional().describe('Only ids with this prefix; UUIDs in any case'),
  search: z
    .string()
    .min(1)
    .max(MAX_SEARCH_CHARS)
    .optional()
    .describe(
      'Only submissions whose id, or a value of whose metadata at any depth, contains this text in upper or lower case. There ' +
        'is no index of it: a page examines at most 2,500 of the submissions that meet the other conditions',
    ),
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

export const countQuerySchema = z.strictObject(parameters).superRefine(check);
export const listQuerySchema = z.strictObject({ ...parameters, limit: pageLimit }).superRefine(check);

export function submissionFilterOf(query: Query): SubmissionFilter {
  return {
    statuses: query.status,
    upstream: query.upstream,
    metadata: query.metadata,
    trackedSince: query.tracked_since,
    trackedUntil: query.tracked_until,
    endedSince: query.ended_since,
    endedUntil: query.ended_until,
    prefix: query.prefix,
    search: query.search,
  };
}

/** Returns the position of the cursor; undefined if there is none, or if it belongs to a list with another order. */
export function positionOf({ cursor, ...query }: Query): Position | undefined {
  if (cursor === undefined) return undefined;
  const order = orderOf(submissionFilterOf(query));
  if (order === 'tracked' || order === 'ended') return fromTimeCursor(order, cursor);
  const position = order === 'id' ? fromIdCursor(cursor) : fromCursor(cursor);
  return position === undefined ? undefined : [position];
}

/** Returns the `next_cursor` of a page; null on the last page. */
export function cursorOf(filter: SubmissionFilter, next: Position | null): string | null {
  if (next === null) return null;
  const order = orderOf(filter);
  const [first, row] = next;
  if (order === 'id') return toIdCursor(String(first));
  return order === 'newest' ? toCursor(Number(first)) : toTimeCursor(order, [Number(first), Number(row)]);
}

function parsedObject(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns why a filter is not allowed; undefined if it is. */
function metadataRefusal(fields: unknown): string | undefined {
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields))
    return 'must be written as metadata.order=4711, or be an object as JSON like {"order":4711}';
  const entries = Object.entries(fields);
  if (entries.length === 0 || entries.length > MAX_METADATA) return `must have 1 to ${MAX_METADATA} names`;
  for (const [name, value] of entries) {
    const shown = JSON.stringify(name.slice(0, 40));
    if (Array.isArray(value)) return `${shown} must be given once, as one value`;
    if (typeof value === 'object' && value !== null) return `${shown} must be a string, a number, true, false or null`;
    const reason = unsearchable(name, toText(value));
    if (reason !== undefined) return reason;
  }
  return undefined;
}

function toTexts([name, value]: [string, unknown]): [string, string] {
  return [name, toText(value)];
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
