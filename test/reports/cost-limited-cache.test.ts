import { expect, it } from 'vitest';
import { costLimitedCache } from '../../src/operations/ledger-stats.ts';

it('computes the value again only after 100 times the duration of the computation', () => {
  let now = 0;
  let made = 0;
  const costing = (ms: number) =>
    costLimitedCache(
      () => {
        now += ms;
        return ++made;
      },
      () => now,
    );
  const dear = costing(10);
  expect(dear()).toBe(1);
  now += 999;
  expect(dear()).toBe(1);
  now += 1;
  expect(dear()).toBe(2);
});

it('caches no failure', () => {
  const results = [new Error('no'), 'fine'];
  const value = costLimitedCache(() => {
    const next = results.shift();
    if (next instanceof Error) throw next;
    return next;
  });
  expect(() => value()).toThrow('no');
  expect(value()).toBe('fine');
});
