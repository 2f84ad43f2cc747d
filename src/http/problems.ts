import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { LedgerError, type LedgerProblem } from '../ledger/errors.ts';
import { shownOf } from '../lib/explain-issue.ts';
import { DamagedRowError } from '../lib/json.ts';
import { InvalidRequestError, logOf, REQUEST_ID_HEADER } from './typed-server.ts';

/** Also on responses without a route. Not cached: confidential. The TLS proxy sets HSTS. */
export const SECURITY_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-embedder-policy': 'require-corp',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const;

export const problemSchema = z
  .object({
    type: z.string().describe('The kind of problem: urn:dawatch:problem:…'),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    instance: z.string().describe('The id of this request, as in the logs and in x-request-id'),
    error: z
      .string()
      .optional()
      .describe("The same as detail, on the routes of the upstream's own interface"),
    errors: z
      .array(z.object({ pointer: z.string(), detail: z.string() }))
      .optional()
      .describe(
        'Invalid parts of the request; `pointer` is a JSON pointer into the body or the name of a parameter',
      ),
  })
  .describe('A problem document (RFC 9457)')
  .meta({ id: 'Problem' });

const problemResponse = {
  description: 'A problem document (RFC 9457)',
  content: { 'application/problem+json': { schema: problemSchema } },
};

/** The last part of the type of each problem, and its title. */
export const PROBLEMS = {
  400: ['invalid-request', 'The request is not valid'],
  401: ['unauthenticated', 'A valid credential is required'],
  403: ['forbidden', 'Not allowed for this credential'],
  404: ['not-found', 'Not found'],
  408: ['timeout', 'The request took too long'],
  409: ['conflict', 'The request conflicts with the current state'],
  413: ['too-large', 'The body is too large'],
  415: ['unsupported-media-type', 'The body must be JSON'],
  431: ['headers-too-large', 'The headers are too large'],
  429: ['too-many-requests', 'Too many requests'],
  500: ['internal', 'Internal error'],
  502: ['upstream-failed', 'The upstream returned an unusable response'],
  503: ['unavailable', 'Temporarily unavailable'],
  504: ['upstream-timeout', 'The upstream did not respond in time'],
  507: ['out-of-space', 'Out of space'],
} as const satisfies Record<number, readonly [type: string, title: string]>;
export type ProblemStatus = keyof typeof PROBLEMS;

/** The OpenAPI document adds those of every route: 400, 401, 403, 429 and 503. */
export function problemResponses<S extends ProblemStatus>(...statuses: S[]) {
  return Object.fromEntries(statuses.map((status) => [status, problemResponse])) as Record<
    S,
    typeof problemResponse
  >;
}

/** The name of an operation is its operationId. */
export function operations<Described extends Record<string, object>>(
  tag: string,
  described: Described,
) {
  const named = Object.entries(described).map(([id, schema]) => [
    id,
    { operationId: id, tags: [tag], ...schema },
  ]);
  return Object.fromEntries(named) as {
    [Id in keyof Described]: Described[Id] & { operationId: string };
  };
}

type Problem = z.output<typeof problemSchema>;

export function problemBody(
  instance: string,
  status: ProblemStatus,
  detail: string,
  errors?: Problem['errors'],
): Problem {
  const [type, title] = PROBLEMS[status];
  return {
    type: `urn:dawatch:problem:${type}`,
    title,
    status,
    detail,
    instance,
    ...(errors && { errors }),
  };
}

export function sendProblem(
  reply: FastifyReply,
  status: ProblemStatus,
  detail: string,
  errors?: Problem['errors'],
): FastifyReply {
  const { id, routeOptions } = reply.request;
  const body = problemBody(id, status, detail, errors);
  return reply
    .code(status)
    .type('application/problem+json')
    .serializer((problem: unknown) => JSON.stringify(problem))
    .send({ ...body, ...(routeOptions.config?.hasErrorMember && { error: detail }) });
}

export function sendInvalidField(reply: FastifyReply, field: string, reason: string): FastifyReply {
  const errors = [{ pointer: `/${field}`, detail: reason }];
  return sendProblem(reply, 400, `body /${field}: ${reason}`, errors);
}

/** Sets Retry-After in whole seconds, at least one; null sets nothing. */
export function setRetryAfter(reply: FastifyReply, ms: number | null): void {
  if (ms !== null) reply.header('retry-after', Math.max(1, Math.ceil(ms / 1_000)));
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A route of the upstream's interface: its clients read the `error` member of a failure. */
    hasErrorMember?: boolean;
  }
}

const DEFECTS: Partial<Record<LedgerProblem, string>> = {
  full: 'the disk is full',
  locked: 'another program has locked the ledger',
};

/** The text of a 5xx goes to the log only. `notFoundHint`: suffix of a 404 for a disabled path. */
export function registerProblems(app: FastifyInstance): void {
  app.setNotFoundHandler((request, reply) => {
    const path = (request.url.split('?')[0] ?? '').slice(0, 200);
    return sendProblem(reply, 404, `there is no ${request.method} ${path}`);
  });
  app.setErrorHandler((error: FastifyError, request, reply) => {
    if (error instanceof InvalidRequestError)
      return sendProblem(reply, 400, error.message, error.errors);
    if (error instanceof LedgerError) {
      logOf(request).error({ err: error }, 'http.failed');
      const isFull = error.problem === 'full';
      reply.header('retry-after', isFull ? 30 : 5);
      const defect = DEFECTS[error.problem] ?? 'the ledger is unavailable';
      const detail = `${defect}: nothing of the request was stored`;
      return sendProblem(reply, isFull ? 507 : 503, detail);
    }
    const status = error.statusCode ?? 500;
    if (isClientError(status)) {
      const detail = BODY_REFUSALS[error.code]?.(request) ?? 'the request cannot be read';
      return sendProblem(reply, status, detail);
    }
    logOf(request).error({ err: error }, 'http.failed');
    const detail =
      error instanceof DamagedRowError
        ? error.message
        : 'the log has the reason under this instance';
    return sendProblem(reply, 500, detail);
  });
}

/** No hooks or limits run for a request that the router refuses, so the connection is closed. */
export function sendUnroutable(
  error: FastifyError,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  reply.headers({ ...SECURITY_HEADERS, [REQUEST_ID_HEADER]: request.id, connection: 'close' });
  const tooLong = error.code === 'FST_ERR_MAX_PARAM_LENGTH';
  sendProblem(
    reply,
    400,
    tooLong ? 'a part of the path is too long' : 'the path is not correctly encoded',
  );
}

/** Problem texts for Fastify's errors about bodies. */
const BODY_REFUSALS: Record<string, (request: FastifyRequest) => string> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ({ headers }) =>
    `the body must be JSON, sent with content-type: application/json${shownOf(headers['content-type'])}`,
  FST_ERR_CTP_BODY_TOO_LARGE: ({ routeOptions }) =>
    `the body must have at most ${routeOptions.bodyLimit} bytes`,
  // The field is refused because it could change the prototype of objects.
  FST_ERR_CTP_INVALID_JSON_BODY: () =>
    'the body is not valid JSON, or has the forbidden field __proto__',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: () => 'the length of the body differs from Content-Length',
};

function isClientError(status: number): status is ProblemStatus & (400 | 408 | 413 | 415) {
  return status in PROBLEMS && status < 500;
}
