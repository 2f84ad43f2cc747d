import { afterEach, expect, it, vi } from 'vitest';
import { ReadLimit } from '../../../src/ledger/file/read-limit.ts';

afterEach(() => void vi.restoreAllMocks());

/** Returns the number of rows of a page whose rows take these times, in milliseconds; undefined: it did not end. */
function rowsUntilLimit(times: readonly number[]): number | undefined {
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const limit = new ReadLimit();
  const last = times.findIndex((ms) => {
    now += ms;
    return limit.isReached();
  });
  return last < 0 ? undefined : last + 1;
}
const rows = (count: number, ms: number) => Array.from({ length: count }, () => ms);

it('ends a page whose rows come from a disk', () => {
  expect(rowsUntilLimit(rows(1_000, 0.25))).toBe(61);
  expect(rowsUntilLimit(rows(1_000, 5))).toBe(10);
});

it('ends no page of rows in memory, however long it takes, or how often the process has no core', () => {
  expect(rowsUntilLimit(rows(4_000, 0.05))).toBeUndefined();
  expect(rowsUntilLimit([...rows(9, 500), ...rows(2_000, 0.01)])).toBeUndefined();
  const interrupted = rows(4_000, 0.01).map((ms, index) => (index % 60 === 59 ? 20 : ms));
  expect(rowsUntilLimit(interrupted)).toBeUndefined();
});
