import { isUnlimited } from '../access/limits.ts';
import { PROBLEMS, type ProblemStatus, problemBody } from '../problems.ts';

/** The `detail` of an example of each documented problem. */
const EXAMPLES: Partial<Record<ProblemStatus, string>> = {
  400: 'query limit: must be a whole number from 1 to 1000, not "many"',
  401: 'send a valid credential as x-api-key or Authorization: Bearer',
  403: 'this needs the scope admin; the role user has users:read',
  404: '6df2c1ce was never tracked here',
  409: '6df2c1ce is already tracked at the upstream other; nothing was accepted',
  413: 'the body must have at most 65536 bytes',
  415: 'the body must be JSON, sent with content-type: application/json, not "text/plain"',
  429: 'at most 60000 requests a minute; try again in 17 s',
  502: 'the upstream failed',
  503: 'the ledger is unavailable: nothing of the request was stored',
  504: 'the upstream did not respond in time',
  507: 'the disk is full: nothing of the request was stored',
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
  etag: {
    description: 'Entity tag for If-None-Match',
    schema: { type: 'string' },
    example: '"n4bQgYhMfWWaL-qgxVrQFa"',
  },
  'www-authenticate': {
    description: 'How to authenticate',
    schema: { type: 'string' },
    example: 'Bearer realm="dawatch"',
  },
};
type HeaderName = keyof typeof RESPONSE_HEADERS;

const INSTANCE = '0b9ff3b2-6f0a-4f2c-8a50-8d0a4f6f1a55';
const PROBLEM_REF = { $ref: '#/components/schemas/Problem' };

/** Statuses with Retry-After. */
const RETRIED: readonly number[] = [429, 502, 503, 504, 507];

export const PROBLEM_RESPONSES = {
  ...Object.fromEntries(
    Object.entries(EXAMPLES).map(([text, detail]) => {
      const status = Number(text) as ProblemStatus;
      const [name, description] = PROBLEMS[status];
      const example = problemBody({ status, detail }, INSTANCE);
      const content = { 'application/problem+json': { schema: PROBLEM_REF, example } };
      const own: HeaderName[] = status === 401 ? ['www-authenticate'] : RETRIED.includes(status) ? ['retry-after'] : [];
      const headers = { ...headerRefs(own), ...commonRefs({ isLimited: true }) };
      return [name, { description, headers, content }];
    }),
  ),
  Problem: { description: 'Any other problem', content: { 'application/problem+json': { schema: PROBLEM_REF } } },
};

type Operation = {
  security?: unknown[] | undefined;
  responses: Record<string, { headers?: object; content?: object }>;
};

/** Adds the problems that every route can return and the headers of all responses. */
export function completeOperation(path: string, operation: Operation): void {
  const isOpen = operation.security?.length === 0;
  const common = [400, ...(isOpen ? [] : [401, 403, 503]), ...(isUnlimited(path) ? [] : [429])];
  for (const status of common) operation.responses[status] ??= {};
  for (const [status, response] of Object.entries(operation.responses)) {
    if (Number(status) in EXAMPLES && isProblem(response)) {
      const [name] = PROBLEMS[Number(status) as ProblemStatus];
      operation.responses[status] = { $ref: `#/components/responses/${name}` } as object;
    } else if ('304' in operation.responses && Number(status) < 400)
      response.headers = { ...headerRefs(['etag']), ...commonRefs({ isLimited: !isUnlimited(path) }) };
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
