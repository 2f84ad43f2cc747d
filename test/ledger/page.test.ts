import { describe, expect, it } from 'vitest';
import { takePage } from '../../src/ledger/page.ts';

const MIB = 1024 * 1024;
const rows = (...lengths: number[]) =>
  lengths.map((length, id) => ({ id, response: 'x'.repeat(length), error: null }));
const take = (limit: number, ...lengths: number[]) => {
  const { page, hasMore } = takePage<{ id: number }>(rows(...lengths), limit);
  return [page.length, hasMore];
};

describe('a page of a list', () => {
  it.each<[string, number, number[], [number, boolean]]>([
    ['nothing', 10, [], [0, false]],
    ['fewer rows than its limit', 10, [1, 1], [2, false]],
    ['exactly as many rows as its limit', 2, [1, 1], [2, false]],
    ['one more row than its limit', 2, [1, 1, 1], [2, true]],
    ['rows with exactly as many characters as fit', 10, [MIB - 1, 1], [2, false]],
    ['one character too many', 10, [MIB - 1, 2], [1, true]],
    ['a first row that exceeds the limit alone', 10, [2 * MIB, 1], [1, true]],
    ['only a row that exceeds the limit', 10, [2 * MIB], [1, false]],
    ['only rows that exceed the limit', 1, [2 * MIB, 2 * MIB], [1, true]],
  ])('ends where it should, of %s', (_, limit, lengths, expected) => {
    expect(take(limit, ...lengths)).toEqual(expected);
  });

  it('reads no further than one row beyond its end', () => {
    let read = 0;
    function* endless() {
      for (;;) yield { id: ++read, response: 'x'.repeat(MIB / 4) };
    }
    expect(takePage(endless(), 1_000).page).toHaveLength(4);
    expect(read).toBe(5);
  });
});
