import { z } from 'zod';
import { isUnlimited } from '../access/limits.ts';
import { type ProblemStatus, problemBody, problemSchema } from '../problems.ts';

/** Description and example for each problem status. */
const PROBLEMS: Partial<Record<ProblemStatus, { name: string; description: string; detail: string }>> = {
  400: {
    name: 'Invalid',
    description: 'The request is not valid; see `errors`',
    detail: 'query limit: must be a whole number from 1 to 1000, not "many"',
  },
  401: {
    name: 'Unauthenticated',
    description: 'No credential, or an unknown one',
    detail: 'send a valid credential as x-api-key or Authorization: Bearer',
  },
  403: {
    name: 'Forbidden',
    description: 'The role of the credential does not allow this',
    detail: 'this needs the role admin, yours is user',
  },
  404: { name: 'NotFound', description: 'Not found', detail: '6df2c1ce was never tracked here' },
  409: {
    name: 'Conflict',
    description: 'The request conflicts with the current state',
    detail: '6df2c1ce is already tracked at the upstream other; nothing was accepted',
  },
  413: { name: 'TooLarge', description: 'The body is too large', detail: 'the body must have at most 65536 bytes' },
  415: {
    name: 'UnsupportedMediaType',
    description: 'The body is not JSON',
    detail: 'the body must be JSON, sent with content-type: application/json, not "text/plain"',
  },
  429: {
    name: 'TooManyRequests',
    description: 'The limit of this credential or address is exhausted',
    detail: 'at most 60000 requests a minute; try again in 17 s',
  },
  502: {
    name: 'UpstreamFailed',
    description: 'The upstream returned an unusable response',
    detail: 'the upstream failed',
  },
  503: {
    name: 'Unavailable',
    description: 'Temporarily unavailable',
    detail: 'the ledger can not be used: nothing of the request was taken',
  },
  504: {
    name: 'UpstreamTimeout',
    description: 'The upstream did not respond in time',
    detail: 'the upstream did not respond in time',
  },
  507: {
    name: 'OutOfSpace',
    description: 'The disk of dawatch is full',
    detail: 'no room left to keep this: nothing of the request was taken',
  },
};

const number = (description: string, example: number) => ({ description, schema: { type: 'integer' }, example });

export const RESPONSE_HEADERS = {
  'x-request-id': {
    description: "Id of this request, as in the logs; the client's own if it sent a valid one",
    schema: { type: 'string' },
    example: '0b9ff3b2-6f0a-4f2c-8a50-8d0a4f6f1a55',
  },
  'ratelimit-limit': number('Requests per minute', 60_000),
  'ratelimit-remaining': number('Requests left in this window', 59_998),
  'ratelimit-reset': number('Seconds until the window ends', 43),
  'retry-after': number('Seconds to wait before the next attempt', 17),
  'www-authenticate': {
    description: 'How to authenticate',
    schema: { type: 'string' },
    example: 'Bearer realm="dawatch"',
  },
};
type HeaderName = keyof typeof RESPONSE_HEADERS;

const { $schema: _, ...problemJsonSchema } = z.toJSONSchema(problemSchema, { io: 'output' });
const INSTANCE = '0b9ff3b2-6f0a-4f2c-8a50-8d0a4f6f1a55';
const PROBLEM_REF = { $ref: '#/components/schemas/Problem' };

/** Additional headers by status. */
const HEADERS_OF: Partial<Record<ProblemStatus, HeaderName[]>> = {
  401: ['www-authenticate'],
  429: ['retry-after'],
  502: ['retry-after'],
  503: ['retry-after'],
  504: ['retry-after'],
  507: ['retry-after'],
};

export const PROBLEM_COMPONENTS = {
  schemas: { Problem: problemJsonSchema },
  responses: {
    ...Object.fromEntries(
      Object.entries(PROBLEMS).map(([text, { name, description, detail }]) => {
        const status = Number(text) as ProblemStatus;
        const example = problemBody({ status, detail }, INSTANCE);
        const content = { 'application/problem+json': { schema: PROBLEM_REF, example } };
        const headers = { ...headerRefs(HEADERS_OF[status] ?? []), ...commonRefs({ isLimited: true }) };
        return [name, { description, headers, content }];
      }),
    ),
    Problem: { description: 'Any other problem', content: { 'application/problem+json': { schema: PROBLEM_REF } } },
  },
};

type Operation = { security?: unknown[]; responses: Record<string, { headers?: object; content?: object }> };

/** Adds the problems that every route can return and the headers of all responses. */
export function completeOperation(path: string, operation: Operation): void {
  const isOpen = operation.security?.length === 0;
  const common = [400, ...(isOpen ? [] : [401, 403, 503]), ...(isUnlimited(path) ? [] : [429])];
  for (const status of common) operation.responses[status] ??= {};
  for (const [status, response] of Object.entries(operation.responses)) {
    const problem = PROBLEMS[Number(status) as ProblemStatus];
    if (problem && isProblem(response))
      operation.responses[status] = { $ref: `#/components/responses/${problem.name}` } as object;
    else response.headers = { ...response.headers, ...commonRefs({ isLimited: !isUnlimited(path) }) };
  }
  operation.responses.default = { $ref: '#/components/responses/Problem' } as object;
}

function isProblem({ content }: { content?: object }): boolean {
  return content === undefined || 'application/problem+json' in content;
}

function commonRefs({ isLimited }: { isLimited: boolean }) {
  const limits = ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset'] as const;
  return headerRefs(['x-request-id', ...(isLimited ? limits : [])]);
}

function headerRefs(names: readonly HeaderName[]) {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
