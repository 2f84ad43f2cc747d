import { Agent } from 'node:http';
import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import { call, problemOf } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { API_KEY, useApp } from '../support/app/running-app.ts';

const app = useApp({ adminToken: ADMIN_TOKEN });
const agent = new Agent({ keepAlive: true });
afterAll(() => agent.destroy());

const ascii = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
});
const SEGMENTS = 'v1 docs static submissions a wait livez .. %2e%2e %00 %'.split(' ');
const segment = fc.oneof(ascii, fc.constantFrom(...SEGMENTS));
const query = fc
  .array(
    fc.tuple(
      fc.constantFrom('status', 'limit', 'cursor', 'timeout_s', '__proto__', 'x'),
      fc.string(),
    ),
  )
  .map((pairs) =>
    pairs.map(([name, value]) => `${name}=${encodeURIComponent(value.toWellFormed())}`).join('&'),
  );
/** The content of a cursor, changed. */
const cursor = fc
  .tuple(
    fc.constantFrom('["row",', '["id",', '["tracked",5,', '["ended",-7,', '["newest",', ''),
    fc.oneof(fc.string(), fc.integer().map(String), fc.bigInt().map(String)),
  )
  .map(([kind, rest]) => Buffer.from(`${kind}${rest}]`).toString('base64url'));
const LISTS = [
  'submissions?tracked_since=2000-01-01T00:00:00Z',
  'submission_count?ended_since=2000-01-01T00:00:00Z',
  ...['submissions?limit=2', 'submissions?prefix=a', 'deliveries?limit=2', 'webhooks?limit=2'],
  'audit?limit=2',
];
const page = fc
  .tuple(fc.constantFrom(...LISTS), cursor, fc.constantFrom('', '=', '%20', 'A', '.'))
  .map(([list, text, rest]) => `/v1/${list}&cursor=${text}${rest}`);
const target = fc.oneof(
  page,
  fc.array(segment, { maxLength: 5 }).map((segments) => `/${segments.join('/')}`),
  fc
    .tuple(fc.constantFrom('/v1/submissions', '/v1/submissions/a'), fc.oneof(query, ascii))
    .map((parts) => parts.join('?')),
  // A valid long poll would take its full timeout.
  fc
    .tuple(ascii, query)
    .map(([id, text]) => `/v1/submissions/${encodeURIComponent(id)}/wait?${text}&timeout_s=0`),
);
const json = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom('a', ['a'], 0, -1, 1e308, '2100-01-01T00:00:00Z', 'default'),
);
const date = fc.oneof(
  fc.date({ noInvalidDate: true }).map((at) => at.toISOString()),
  fc.stringMatching(
    /^20\d\d-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d(:[0-5]\d(\.\d{1,12})?)?(Z|[+-][0-2]\d:[0-5]\d)$/,
  ),
);
const fields = fc.record(
  {
    submission_id: fc.oneof(json, ascii),
    submission_ids: fc.oneof(json, fc.array(fc.oneof(ascii, fc.string()))),
    upstream: json,
    deadline: fc.oneof(json, date),
    unknown_grace_s: fc.oneof(json, fc.double({ noNaN: true })),
    stuck_after_s: json,
    metadata: fc.oneof(json, fc.dictionary(fc.string(), json)),
  },
  { requiredKeys: [] },
);
const body = fc.oneof(
  fields.map((value) => JSON.stringify(value)),
  fc.jsonValue().map((value) => JSON.stringify(value)),
  fc.string(),
  fc.uint8Array({ maxLength: 200 }),
);
const headers = fc.record(
  {
    'x-api-key': fc.constantFrom(API_KEY, ADMIN_TOKEN),
    'content-type': fc.constantFrom('application/json', 'text/plain', 'a/b', ';', ''),
    accept: ascii,
    'accept-version': ascii,
    'content-encoding': ascii,
    'x-http-method': ascii,
  },
  { requiredKeys: [] },
);

it('never responds with 5xx or with an error that is no problem document', async () => {
  const request = fc.record({
    target,
    method: fc.constantFrom('GET', 'POST', 'DELETE', 'PUT', 'PATCH', 'OPTIONS'),
    headers,
    body: fc.option(body, { nil: undefined }),
  });
  await fc.assert(
    fc.asyncProperty(request, async ({ target, ...options }) => {
      const response = await call(app.url, target, { ...options, agent });
      expect(response.status).toBeLessThan(500);
      if (response.status >= 400) problemOf(response);
    }),
    { numRuns: 300 },
  );
});

it('responds to a changed cursor with a page or a problem that names the cursor', async () => {
  await fc.assert(
    fc.asyncProperty(page, async (path) => {
      const response = await call(app.url, path, { headers: { 'x-api-key': ADMIN_TOKEN }, agent });
      if (response.status === 200) return;
      expect(response.status).toBe(400);
      const pointers = problemOf(response).errors?.map(({ pointer }) => pointer);
      expect(new Set(pointers)).toEqual(new Set(['cursor']));
    }),
    { numRuns: 60 },
  );
});
