import fc from 'fast-check';
import { expect, it } from 'vitest';
import { toCursor } from '../../src/http/typed-server.ts';
import { toIdCursor } from '../../src/submissions/search-route.ts';
import { call, problemOf } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { useApp } from '../support/app/running-app.ts';

const position = fc.integer({ min: 1, max: 999_999_999_999_999 });
const id = fc.stringMatching(/^[\x21-\x7e]{1,128}$/);
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200, size: 'max' }),
  fc.base64String(),
  // The content of a cursor with a modification, and a cursor with added characters.
  fc
    .tuple(
      fc.constantFrom('s1.', 'i1.', 't1.5.', 'e1.-7.', 's2.', 'S1.', ''),
      fc.oneof(fc.string(), fc.integer().map(String), fc.bigInt().map(String)),
    )
    .map(([kind, rest]) => Buffer.from(`${kind}${rest}`).toString('base64url')),
  fc.tuple(position, fc.string({ maxLength: 3 })).map(([at, rest]) => `${toCursor(at)}${rest}`),
  fc
    .tuple(id, fc.constantFrom('=', '==', ' ', '\n', 'A', '.'))
    .map(([name, rest]) => `${toIdCursor(name)}${rest}`),
);

const app = useApp({ adminToken: ADMIN_TOKEN });

it('a list responds to any cursor with a page or 400', async () => {
  const lists = fc.constantFrom(
    '/v1/submissions?limit=2',
    '/v1/submissions?prefix=a&limit=2',
    '/v1/submissions?status=pending',
    '/v1/submissions?tracked_since=2000-01-01T00:00:00Z',
    '/v1/submission_count?ended_since=2000-01-01T00:00:00Z',
    '/v1/deliveries?limit=2',
    '/v1/webhooks?limit=2',
    '/v1/audit?limit=2',
  );
  await fc.assert(
    fc.asyncProperty(lists, text, async (list, cursor) => {
      const headers = { 'x-api-key': ADMIN_TOKEN };
      const response = await call(
        app.url,
        `${list}&cursor=${encodeURIComponent(cursor.toWellFormed())}`,
        { headers },
      );
      expect([200, 400]).toContain(response.status);
      if (response.status === 400) expect(problemOf(response).detail).toMatch(/cursor/);
    }),
    { numRuns: 100 },
  );
});
