import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  cursorSchema,
  fromCursor,
  fromTimeCursor,
  toCursor,
  toTimeCursor,
} from '../../src/http/typed-server.ts';
import { fromIdCursor, toIdCursor } from '../../src/submissions/search-route.ts';
import { SUBMISSION_ID_PATTERN } from '../../src/submissions/submission.ts';
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

describe('a cursor', () => {
  it('decodes to the position or id it was made of', () => {
    fc.assert(
      fc.property(
        position,
        (at) => fromCursor(toCursor(at)) === at && cursorSchema.safeParse(toCursor(at)).success,
      ),
    );
    fc.assert(fc.property(id, (name) => fromIdCursor(toIdCursor(name)) === name));
    fc.assert(
      fc.property(
        fc.constantFrom('tracked', 'ended', 'created'),
        fc.maxSafeInteger(),
        position,
        (kind, time, at) => {
          expect(fromTimeCursor(kind, toTimeCursor(kind, [time, at]))).toEqual([time, at]);
        },
      ),
    );
  });

  it('has one valid spelling; any other text is refused', () => {
    fc.assert(
      fc.property(text, (given) => {
        const at = fromCursor(given);
        if (at !== undefined)
          expect([Number.isSafeInteger(at) && at > 0, toCursor(at)]).toEqual([true, given]);
        const name = fromIdCursor(given);
        if (name !== undefined)
          expect([SUBMISSION_ID_PATTERN.test(name), toIdCursor(name)]).toEqual([true, given]);
        const time = fromTimeCursor('tracked', given);
        if (time !== undefined) expect(toTimeCursor('tracked', time)).toBe(given);
      }),
      { numRuns: 2_000 },
    );
  });
});

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
