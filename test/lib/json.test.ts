import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  isSameJson,
  isTextTooDeep,
  isTooDeep,
  MAX_NESTING,
  parseJson,
} from '../../src/lib/json.ts';
import { classify } from '../../src/submissions/classify.ts';

const arrays = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const objects = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;

/** Counts the levels by definition, for values of small depth. */
function levelsOf(value: unknown): number {
  return typeof value === 'object' && value !== null
    ? 1 + Math.max(0, ...Object.values(value).map(levelsOf))
    : 0;
}

it.each([arrays, objects])('%o: the maximum depth is accepted, one more level is not', (nested) => {
  for (const [levels, tooDeep] of [
    [1, false],
    [MAX_NESTING, false],
    [MAX_NESTING + 1, true],
    [1_000_000, true],
  ] as const) {
    expect(isTextTooDeep(nested(levels))).toBe(tooDeep);
    expect(isTooDeep(JSON.parse(nested(levels)))).toBe(tooDeep);
    expect(parseJson(nested(levels)) === undefined).toBe(tooDeep);
  }
});

it('brackets within strings are no levels, whatever escapes precede them', () => {
  fc.assert(
    fc.property(fc.json(), fc.string(), fc.integer({ min: 0, max: 80 }), (json, text, extra) => {
      const nested = `${'['.repeat(extra)}{${JSON.stringify(text + '[{'.repeat(80))}:${json}}${']'.repeat(extra)}`;
      const isDeep = extra + 1 + levelsOf(JSON.parse(json)) > MAX_NESTING;
      expect(isTextTooDeep(nested)).toBe(isDeep);
      expect(isTooDeep(JSON.parse(nested))).toBe(isDeep);
    }),
  );
});

it('an object that contains itself is too deep', () => {
  const circle: Record<string, unknown> = {};
  circle.circle = circle;
  expect(isTooDeep(circle)).toBe(true);
});

it.each(['data', 'extra', 'error'])(
  'a response with `%s` nested too deeply is unusable, and the submission is polled again',
  (field) => {
    const responseWith = (levels: number, httpStatus = 200) =>
      classify('s', {
        kind: 'response',
        httpStatus,
        retryAfter: null,
        date: null,
        body: `{"state":"Pending","${field}":${field === 'data' ? objects(levels) : arrays(levels)}}`,
      });
    expect(responseWith(MAX_NESTING - 1)).toMatchObject({ kind: 'pending' });
    for (const levels of [MAX_NESTING, 4_400, 100_000]) {
      expect(responseWith(levels)).toMatchObject({
        kind: 'unavailable',
        reason: 'malformed',
        error: /64 levels/,
      });
      // The HTTP status is not accepted as evidence about the submission either.
      for (const status of [404, 406, 500, 503])
        expect(responseWith(levels, status)).toMatchObject({ kind: 'unavailable' });
    }
  },
);

describe('isSameJson', () => {
  it.each<[boolean, unknown, unknown]>([
    [true, { a: 1, b: [1, { c: null }] }, { b: [1, { c: null }], a: 1 }],
    [false, { a: 1 }, { a: 1, b: undefined }],
    [false, { a: undefined }, { b: undefined }],
    [false, [1, 2], [2, 1]],
    [false, [], {}],
    [false, null, {}],
    [false, '1', 1],
    [true, null, null],
  ])('%s: %j and %j', (expected, a, b) => {
    expect([isSameJson(a, b), isSameJson(b, a)]).toEqual([expected, expected]);
  });
});
