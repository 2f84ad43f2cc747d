import { expect, it } from 'vitest';
import {
  attained,
  BURN_WINDOW_NAMES,
  type BurnWindow,
  budgetLeft,
  burnRate,
  fastestBurn,
  type ObjectiveCounts,
  type ObjectiveStatus,
} from '../../src/submissions/objective.ts';

const objective = { target: 0.99, withinMs: 120_000 };
/** Of a thousand submissions in each window, this many late ones. */
function status(bad: Partial<Record<BurnWindow, number>>): ObjectiveStatus {
  const counts = (late = 0): ObjectiveCounts => ({ good: 1_000 - late, bad: late });
  const windows = Object.fromEntries(BURN_WINDOW_NAMES.map((name) => [name, counts(bad[name])]));
  return {
    upstream: 'default',
    objective,
    budget: counts(),
    windows: windows as ObjectiveStatus['windows'],
  };
}

it('the error budget is the share of late submissions that the objective allows', () => {
  const spent = (bad: number) => budgetLeft({ good: 1_000 - bad, bad }, objective);
  expect([0, 5, 10, 20].map(spent).map((left) => Math.round(100 * left))).toEqual([
    100, 50, 0, -100,
  ]);
  expect(burnRate({ good: 990, bad: 10 }, objective)).toBeCloseTo(1);
  expect(attained({ good: 990, bad: 10 })).toBe(0.99);
});

it('without submissions nothing is spent, and there is no rate', () => {
  const none = { good: 0, bad: 0 };
  expect([attained(none), burnRate(none, objective), budgetLeft(none, objective)]).toEqual([
    null,
    null,
    1,
  ]);
});

const HOUR_MS = 3_600_000;
it.each<[string, Partial<Record<BurnWindow, number>>, number | undefined]>([
  ['nothing late', {}, undefined],
  ['14.4 times in an hour and in five minutes', { '1h': 144, '5m': 144 }, HOUR_MS],
  ['an hour that is over', { '1h': 144, '5m': 0 }, undefined],
  ['five minutes that are not an hour', { '1h': 140, '5m': 900 }, undefined],
  [
    '6 times in six hours and half an hour',
    { '6h': 60, '30m': 60, '1h': 60, '5m': 60 },
    6 * HOUR_MS,
  ],
  ['once in three days and six hours', { '3d': 10, '6h': 10 }, 72 * HOUR_MS],
  ['less than once', { '3d': 9, '6h': 9, '1h': 9 }, undefined],
])('%s', (_, bad, windowMs) => {
  expect(fastestBurn(status(bad), false)?.windowMs).toBe(windowMs);
});

it('an alert clears at half the rate', () => {
  const half = status({ '1h': 73, '5m': 73 });
  expect(fastestBurn(half, false)).toBeUndefined();
  expect(fastestBurn(half, true)).toMatchObject({ windowMs: HOUR_MS, counts: { bad: 73 } });
  expect(fastestBurn(status({ '1h': 71, '5m': 71 }), true)).toBeUndefined();
});

it('a few late submissions raise no alert, whatever their share', () => {
  const windows = Object.fromEntries(BURN_WINDOW_NAMES.map((name) => [name, { good: 0, bad: 4 }]));
  const few = { ...status({}), windows: windows as ObjectiveStatus['windows'] };
  expect(fastestBurn(few, false)).toBeUndefined();
  expect(
    fastestBurn({ ...few, windows: { ...few.windows, '6h': { good: 0, bad: 5 } } }, false),
  ).toBeDefined();
});
