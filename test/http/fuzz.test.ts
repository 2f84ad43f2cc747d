import fc from 'fast-check';
import { expect, it } from 'vitest';
import { call, listOf, problemOf, sendRaw } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { API_KEY, useApp } from '../support/app/running-app.ts';

const app = useApp({ adminToken: ADMIN_TOKEN });

const ascii = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
});
const segment = fc.oneof(
  ascii,
  fc.constantFrom(
    'v1',
    'docs',
    'static',
    'submissions',
    'a',
    'wait',
    'livez',
    '..',
    '%2e%2e',
    '%00',
    '%',
  ),
);
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
const target = fc.oneof(
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
const type = fc.constantFrom(
  'application/json',
  'application/json; charset=utf-16',
  'text/plain',
  'a/b',
  ';',
  '',
);
const headers = fc.record(
  {
    'content-type': type,
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
      const response = await call(app.url, target, options);
      expect(response.status).toBeLessThan(500);
      if (response.status >= 400) problemOf(response);
    }),
    { numRuns: 200 },
  );
});

it('never fails on anything that looks like a request to track', async () => {
  await fc.assert(
    fc.asyncProperty(fields, async (value) => {
      const response = await call(app.url, '/v1/submissions', { method: 'POST', body: value });
      expect([202, 400, 409]).toContain(response.status);
      if (response.status !== 202) problemOf(response);
    }),
    { numRuns: 200 },
  );
  // Everything that was accepted can be shown.
  listOf(await call(app.url, '/v1/submissions?limit=1000'));
});

/** No event is sent to these webhooks, because some of the addresses may exist. */
it('never fails on anything that looks like a webhook, a replay or a filter', async () => {
  const headers = { 'x-api-key': ADMIN_TOKEN };
  const url = fc.oneof(
    json,
    fc.webUrl({ withQueryParameters: true }),
    ascii.map((text) => `https://${text}`),
  );
  const types = fc.oneof(
    json,
    fc.array(fc.oneof(fc.constantFrom('*', 'submission.*', 'alert.raised'), json)),
  );
  const metadata = fc.oneof(json, fc.dictionary(fc.string(), json));
  const secret = fc.oneof(
    json,
    ascii.map((text) => `whsec_${text}`),
    fc.base64String().map((text) => `whsk_${text}`),
  );
  const webhook = fc.record(
    {
      url,
      types,
      metadata,
      secret,
      description: json,
      signature: fc.oneof(json, fc.constant('v1a')),
    },
    { requiredKeys: ['url'] },
  );
  const destination = fc.oneof(
    json,
    ascii,
    ascii.map((text) => `callback:https://${text}`),
  );
  const replay = fc.record({ destination, since: fc.oneof(json, date) });
  await fc.assert(
    fc.asyncProperty(webhook, replay, metadata, async (hook, dead, filter) => {
      const made = await call(app.url, '/v1/webhooks', {
        method: 'POST',
        headers,
        body: { ...hook, enabled: false },
      });
      expect([201, 400]).toContain(made.status);
      const replayed = await call(app.url, '/v1/deliveries/replay', {
        method: 'POST',
        headers,
        body: dead,
      });
      expect([202, 400, 404, 409]).toContain(replayed.status);
      const query = `after=x&metadata=${encodeURIComponent(JSON.stringify(filter).toWellFormed())}`;
      const fed = await call(app.url, `/v1/events?${query}`, { headers });
      expect(fed.status).toBe(400);
      const listed = `/v1/deliveries?destination=${encodeURIComponent(String(JSON.stringify(dead.destination)).toWellFormed())}`;
      for (const response of [made, replayed, fed, await call(app.url, listed, { headers })])
        if (response.status >= 300) problemOf(response);
    }),
    { numRuns: 60 },
  );
  // Everything that was accepted can be shown.
  expect((await call(app.url, '/v1/webhooks?limit=1000', { headers })).status).toBe(200);
});

it('accepts no spelling of an invalid credential', async () => {
  const printed = fc.string({
    unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
  });
  const near = fc.constantFrom(
    `${API_KEY} x`,
    `${API_KEY}\u00e9`,
    `"${API_KEY}"`,
    API_KEY.toUpperCase(),
    `${API_KEY},`,
  );
  const secret = fc.oneof(
    printed,
    near,
    fc.constantFrom('dawatch_admin_', `dawatch_service_${'A'.repeat(43)}`),
  );
  const scheme = fc.constantFrom(
    'Bearer ',
    'bearer',
    'Basic ',
    'Digest username=',
    'Bearer Bearer ',
    '',
  );
  const authorization = fc
    .tuple(scheme, fc.oneof(secret, fc.constant(` x ${API_KEY}`)))
    .map((parts) => parts.join(''));
  const credentials = fc.record(
    {
      'x-api-key': fc.array(secret, { maxLength: 3 }),
      authorization,
      cookie: printed,
      'x-forwarded-for': printed,
    },
    { requiredKeys: ['x-api-key'] },
  );
  const path = fc.constantFrom(
    '/v1/submissions',
    '/v1/audit',
    '/v1/webhooks',
    '/v1/deliveries',
    '/v1/get_submission_info?submission_id=a',
    '/v1/events',
  );
  await fc.assert(
    fc.asyncProperty(credentials, path, async (headers, target) => {
      const response = await call(app.url, target, { headers });
      expect(response.status).toBe(401);
      problemOf(response);
    }),
    { numRuns: 400 },
  );
});

it('responds to arbitrary bytes with 4xx or not at all', async () => {
  const head = fc.constantFrom(
    'GET /livez HTTP/1.1\r\nhost: x\r\n',
    'POST /v1/submissions HTTP/1.1\r\n',
    'GET ',
    '',
  );
  await fc.assert(
    fc.asyncProperty(head, fc.uint8Array({ maxLength: 300 }), async (begin, rest) => {
      const received = await sendRaw(
        app.url,
        Buffer.concat([Buffer.from(begin), rest, Buffer.from('\r\n\r\n')]),
      );
      expect(received).toMatch(/^$|^HTTP\/1\.1 [24]\d\d /);
    }),
    { numRuns: 200 },
  );
  expect((await call(app.url, '/livez')).status).toBe(200);
});
