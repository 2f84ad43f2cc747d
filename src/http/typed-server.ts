import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  FastifySchemaCompiler,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { explainIssue, shownOf } from '../lib/explain-issue.ts';
import { tryParse } from '../lib/json.ts';
import type { Log } from '../operations/logging/event-catalog.ts';

export type TypedServer = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  ZodTypeProvider
>;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route needs no credential. Others need one, see access. */
    isOpen?: boolean;
  }
}

/** Routes of health checks and monitoring, which must always respond. */
const UNLIMITED: readonly string[] = ['/livez', '/readyz', '/metrics'];

export function isUnlimited(route: string | undefined): boolean {
  return route !== undefined && UNLIMITED.includes(route);
}

const PARTS = { body: 'body', params: 'path', querystring: 'query', headers: 'header' } as const;
const MAX_ERRORS = 20;
/** Messages quote the request, which can be megabytes. */
const MAX_QUOTED_CHARS = 300;

export class InvalidRequestError extends Error {
  override readonly name = 'InvalidRequestError';
  readonly statusCode = 400;
  /** `pointer`: a JSON pointer into the body, or the name of a parameter. */
  readonly errors: { pointer: string; detail: string }[];

  constructor(part: (typeof PARTS)[keyof typeof PARTS], issues: readonly z.core.$ZodIssue[]) {
    const errors = issues.slice(0, MAX_ERRORS).map((issue) => ({
      pointer: (part === 'body' ? pointerOf(issue.path) : issue.path.join('/')).slice(
        0,
        MAX_QUOTED_CHARS,
      ),
      detail: reasonOf(part, issue).slice(0, MAX_QUOTED_CHARS),
    }));
    const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : '';
    const [first] = errors;
    const subject = `${part} ${first?.pointer === '/' ? '' : first?.pointer}`.trim();
    super(`${subject}: ${first?.detail}${more}`);
    this.errors = errors;
  }
}

export const compileValidator: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart }) => {
  const part = PARTS[(httpPart ?? 'body') as keyof typeof PARTS];
  const error: z.core.$ZodErrorMap = (issue) =>
    // parseQuery returns an array for a repeated parameter.
    part === 'query' && issue.code === 'invalid_type' && Array.isArray(issue.input)
      ? 'must be given once'
      : explainIssue(issue);
  return (data) => {
    // Fastify has null for an absent body.
    const isDefault = data === null && schema instanceof z.ZodPrefault;
    const result = schema.safeParse(isDefault ? undefined : data, { error });
    return result.success
      ? { value: result.data }
      : { error: new InvalidRequestError(part, result.error.issues) };
  };
};

function reasonOf(part: string, issue: z.core.$ZodIssue): string {
  return part === 'query' && issue.code === 'unrecognized_keys'
    ? issue.message.replace('no field', 'no parameter')
    : issue.message;
}

/** Returns a JSON pointer (RFC 6901), and "/" for the whole body. */
function pointerOf(path: readonly PropertyKey[]): string {
  return `/${path.map((key) => String(key).replaceAll('~', '~0').replaceAll('/', '~1')).join('/')}`;
}

/** Parameters of this form are the fields of one parameter `metadata`. */
const METADATA_PREFIX = 'metadata.';

type Parameters = Record<string, string | string[]>;

/** A repeated parameter becomes an array. `metadata.<name>` become an object `metadata`. */
export function parseQuery(
  text: string,
): Parameters | Record<string, Parameters[string] | Parameters> {
  if (text === '') return {};
  const parameters = new URLSearchParams(text);
  const entries = [...new Set(parameters.keys())].map((name): [string, string | string[]] => {
    const values = parameters.getAll(name);
    return [name, values.length === 1 ? (values[0] ?? '') : values];
  });
  const isField = ([name]: [string, unknown]) => name.startsWith(METADATA_PREFIX);
  const fields = entries
    .filter(isField)
    .map(([name, value]) => [name.slice(METADATA_PREFIX.length), value]);
  const others = Object.fromEntries(entries.filter((entry) => !isField(entry)));
  if (fields.length === 0) return others;
  // A query with both forms yields a list, which the schema refuses.
  return { ...others, metadata: 'metadata' in others ? [] : Object.fromEntries(fields) };
}

/** Stricter than Number(): "1e3", "0x10" and " 7 " are refused. */
export const wholeNumber = ({ min, max }: { min: number; max: number }) => {
  const error = ({ input }: { input?: unknown }) =>
    `must be a whole number from ${min} to ${max}${shownOf(input)}`;
  return z
    .string()
    .regex(/^\d{1,6}$/, { error, abort: true })
    .refine((text) => Number(text) >= min && Number(text) <= max, { error })
    .describe(`A whole number from ${min} to ${max}`)
    .meta(integer({ minimum: min, maximum: max }));
};

/** Text in the request, an integer in the OpenAPI document. */
export function integer(limits: { minimum: number; maximum?: number }) {
  return { type: 'integer', pattern: undefined, ...limits };
}

/** `of`: the kind of row for messages, such as "a mute". */
export const rowId = (of: string, example: string) =>
  z
    .string()
    .regex(/^[1-9]\d{0,14}$/, `must be the id of ${of}`)
    .describe(`Id of ${of}`)
    .meta({ ...integer({ minimum: 1 }), examples: [example] });

/** Cursors are opaque to clients, so that their contents can change. `order`: of the list. */
export function toCursor(order: string, position: readonly (number | string)[]): string {
  return Buffer.from(JSON.stringify([order, ...position])).toString('base64url');
}

/** Returns the position in a cursor; undefined if a list of this order has returned no such one. */
export function fromCursor<Position extends readonly (number | string)[]>(
  cursor: string,
  order: string,
  schema: z.ZodType<Position>,
): Position | undefined {
  const content = tryParse(Buffer.from(cursor, 'base64url').toString());
  const { data } = schema.safeParse(Array.isArray(content) ? content.slice(1) : undefined);
  // Base64 and JSON have several spellings; only the canonical one is accepted.
  return data && toCursor(order, data) === cursor ? data : undefined;
}

const BY_ROW = 'row';

export function rowFrom(cursor: string): number | undefined {
  return fromCursor(cursor, BY_ROW, z.tuple([z.int()]))?.[0];
}

/** Text or a list in the request, text in the OpenAPI document. */
export const SEVERAL = { type: 'string', anyOf: undefined } as const;

/** A query parameter with several values: separated by commas, or repeated. */
export const severalOf = <Value extends string>(values: readonly Value[]) =>
  z.union([z.string(), z.array(z.string())]).transform((given, context) => {
    const names = [...new Set([given].flat().flatMap((text) => text.split(',')))];
    const unknown = names.find((name) => !(values as readonly string[]).includes(name));
    if (unknown === undefined) return names as Value[];
    const message = `must be one or more of ${values.join(', ')}${shownOf(unknown)}`;
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  });

/** A query parameter that is a time, in epoch milliseconds once it is parsed. */
export const timeParameter = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

export function checkRange(
  context: z.core.$RefinementCtx,
  { since, until, name }: { since: number | undefined; until: number | undefined; name: string },
): void {
  if (since !== undefined && until !== undefined && since >= until)
    context.addIssue({
      code: 'custom',
      path: [name],
      message: 'must be after the start of the range',
    });
}

export const CURSOR_REFUSAL = 'is not a cursor returned by this list';

/** A `cursor` parameter of at most `maxChars`, whose kind is not yet checked. */
export const cursorText = (maxChars: number) =>
  z
    .string()
    .max(maxChars)
    .describe('`next_cursor` of the previous page')
    .meta({ examples: [toCursor(BY_ROW, [4_711])] });

export const cursorSchema = cursorText(64).refine(
  (cursor) => rowFrom(cursor) !== undefined,
  CURSOR_REFUSAL,
);

export const pageLimit = wholeNumber({ min: 1, max: 1_000 }).default('100');

export const pageParameters = { limit: pageLimit, cursor: cursorSchema.optional() };

export function pageOf({ limit, cursor }: { limit: string; cursor?: string | undefined }) {
  return { limit: Number(limit), before: cursor === undefined ? undefined : rowFrom(cursor) };
}

export const nextCursorSchema = z
  .string()
  .nullable()
  .describe('Send it as `cursor` to get the next page; null on the last page');

export function nextCursor(nextBefore: number | null): string | null {
  return nextBefore === null ? null : toCursor(BY_ROW, [nextBefore]);
}

export const timeSchema = z.iso.datetime().describe('ISO 8601, UTC');

export const REQUEST_ID_HEADER = 'x-request-id';

/** Request ids that are safe in logs and headers as they are. */
const SAFE_ID = /^[\w.:-]{1,64}$/;

/** Returns the client's own x-request-id if it is safe, otherwise a new UUID. */
export function requestIdOf({ headers }: IncomingMessage): string {
  const id = headers[REQUEST_ID_HEADER];
  return typeof id === 'string' && SAFE_ID.test(id) ? id : randomUUID();
}

const TRACEPARENT = /^[\da-f]{2}(?:-[\da-f]{1,32}){3}$/;

/** Adds `request_id` and `traceparent`. On demand, as few requests log (row status-reads). */
export function logOf({ log, id, headers }: FastifyRequest): Log {
  const traceparent = String(headers.traceparent);
  return log.child({
    request_id: id,
    ...(TRACEPARENT.test(traceparent) && { traceparent }),
  }) as unknown as Log;
}

/** Logs each response at debug. `submissionIdOf`: the submission that a request concerns. */
export function addRequestLog(
  app: FastifyInstance,
  submissionIdOf: (request: FastifyRequest) => string | undefined,
): void {
  app.addHook('onResponse', (request, reply, done) => {
    if ((request.log as unknown as Log).isLevelEnabled('debug')) {
      const submissionId = submissionIdOf(request);
      const fields = {
        address: request.clientAddress,
        method: request.method,
        // The pattern, because the URL can contain names and addresses of users.
        route: request.routeOptions.url,
        http_status: reply.statusCode,
        duration_ms: Math.round(reply.elapsedTime),
        ...(submissionId !== undefined && { submission_id: submissionId }),
      };
      logOf(request).debug(fields, 'http.responded');
    }
    done();
  });
}

/** Aborts when the client disconnects, or has received the response. */
export function goneSignal(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  if (reply.raw.destroyed || reply.request.raw.socket.destroyed) gone.abort();
  reply.raw.once('close', () => gone.abort());
  return gone.signal;
}
