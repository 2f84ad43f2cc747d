import { expect, it } from 'vitest';
import { fromUtcText, toUtcText } from '../../src/dashboard/page/parts/form.js';
import {
  absoluteTime,
  duration,
  percent,
  relativeTime,
} from '../../src/dashboard/page/parts/format.js';
import { hrefTo, parseRoute } from '../../src/dashboard/page/router.js';

it.each([
  [0, '0.00 s'],
  [0.314, '0.31 s'],
  [9.999, '10.0 s'],
  [41.24, '41.2 s'],
  [59.99, '1 min'],
  [200, '3 min 20 s'],
  [3_599.7, '1 h'],
  [7_500, '2 h 5 min'],
  [273_600, '3 d 4 h'],
])('%d s is written as %s', (s, written) => {
  expect(duration(s)).toBe(written);
});

it.each([
  [0, 'now'],
  [-999, 'now'],
  [-1_000, '1 s ago'],
  [-59_999, '59 s ago'],
  [-60_000, '1 min ago'],
  [7_200_000, 'in 2 h'],
  [-86_400_000 * 400, '400 d ago'],
])('a time %d ms from now is written as %s', (ms, written) => {
  const now = Date.UTC(2026, 0, 2, 3, 4, 5);
  expect(relativeTime(new Date(now + ms).toISOString(), now)).toBe(written);
});

it('an absolute time is written in ISO 8601 with its zone', () => {
  expect(absoluteTime('2026-01-02T03:04:05.123Z')).toBe('2026-01-02 03:04:05 UTC');
});

it.each([
  ['2026-01-02', '2026-01-02T00:00:00.000Z'],
  ['2026-01-02 03:04', '2026-01-02T03:04:00.000Z'],
  ['2026-01-02T03:04:05+01:00', '2026-01-02T02:04:05.000Z'],
  ['01/02/2026', ''],
  ['soon', ''],
])('the time %s is read as %s', (text, at) => {
  expect(fromUtcText(text)).toBe(at);
  expect(fromUtcText(toUtcText(at))).toBe(at);
});

it('a share is shown as 0 or 100 % only if it is exact', () => {
  expect([0, 1e-9, 0.004, 0.31, 0.99, 0.999_99, 1].map(percent)).toEqual([
    '0 %',
    '0.1 %',
    '0.4 %',
    '31 %',
    '99 %',
    '99.9 %',
    '100 %',
  ]);
});

it.each(['abc', 'a/b', 'a?b=c', 'a#b', '%', 'a%2Fb', '<b>', '..'])(
  'the URL of a page leads back to the page: %s',
  (id) => {
    expect(parseRoute(hrefTo('submissions', id, { q: 'x&y', status: undefined }))).toEqual({
      page: 'submissions',
      id,
      query: new URLSearchParams({ q: 'x&y' }),
    });
  },
);

it.each(['', '#', '#/', '#/?x=1'])('a URL without a page shows the overview: "%s"', (hash) => {
  expect(parseRoute(hash)).toMatchObject({ page: 'overview', id: undefined });
});

it('a URL that cannot be decoded is used unchanged', () => {
  expect(parseRoute('#/submissions/%zz')).toMatchObject({ page: 'submissions', id: '%zz' });
});
