import Database from 'better-sqlite3';
import fc from 'fast-check';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { findBounded, type Position, type Search } from '../../src/ledger/bounded-search.ts';
import { LedgerDatabase } from '../../src/ledger/ledger-database.ts';

afterEach(() => void vi.restoreAllMocks());

type Row = { at: number; color: string; isGood: number };

/** A table with two indexes. Its rows have the ids 1, 2, … */
function tableOf(rows: readonly Row[]): LedgerDatabase {
  const db = new Database(':memory:');
  onTestFinished(() => void db.close());
  db.exec(`
    CREATE TABLE rows (id INTEGER PRIMARY KEY, at INTEGER, color TEXT, isGood INTEGER);
    CREATE INDEX by_time ON rows (at);
    CREATE INDEX by_color ON rows (color);`);
  const insert = db.prepare('INSERT INTO rows (at, color, isGood) VALUES (@at, @color, @isGood)');
  for (const row of rows) insert.run(row);
  return new LedgerDatabase(db, ':memory:');
}

/** A search for good rows of a color, newest first. */
function search(color: string, maxExamined: number, after: Position = [1_000, 0]): Search {
  const keys = ['r.at', 'r.id'];
  return {
    table: 'rows r',
    id: 'r.id',
    match: 'r.isGood AND r.color = @color',
    order: { keys, direction: 'DESC', behind: '(r.at, r.id) < (@p0, @p1)' },
    sources: [
      { ranges: [{ from: 'rows r INDEXED BY by_color WHERE r.color = @color', id: 'r.id' }] },
      {
        ranges: [],
        size: 1_000,
        walk: [{ from: 'rows r INDEXED BY by_time WHERE (r.at, r.id) < (@p0, @p1)', keys }],
      },
    ],
    parameters: { color, p0: after[0], p1: after[1] },
    maxExamined,
  };
}

const rowsOf = fc.array(
  fc.record({
    at: fc.nat(9),
    color: fc.constantFrom('red', 'blue'),
    isGood: fc.constantFrom(0, 1),
  }),
  { maxLength: 40 },
);

it('the pages contain every matching row once and in order, whatever the bounds', () => {
  const sizes = fc.integer({ min: 1, max: 12 });
  fc.assert(
    fc.property(rowsOf, sizes, sizes, (rows, limit, maxExamined) => {
      const db = tableOf(rows);
      const found: number[] = [];
      for (let after: Position | null = [1_000, 0]; after !== null; ) {
        const page: ReturnType<typeof findBounded> = findBounded(
          db,
          search('red', maxExamined, after),
          limit,
        );
        expect(page.found.length).toBeLessThanOrEqual(limit);
        found.push(...page.found.map(({ id }) => id));
        after = page.next;
      }
      const expected = rows
        .map((row, index) => ({ ...row, id: index + 1 }))
        .filter(({ color, isGood }) => color === 'red' && isGood === 1)
        .toSorted((a, b) => b.at - a.at || b.id - a.id);
      expect(found).toEqual(expected.map(({ id }) => id));
    }),
    { numRuns: 200 },
  );
});

it('a condition outside of SQL applies in the same way, within its own bound', () => {
  const sizes = fc.integer({ min: 1, max: 12 });
  fc.assert(
    fc.property(rowsOf, sizes, sizes, sizes, (rows, limit, maxExamined, maxBytes) => {
      const db = tableOf(rows);
      const found: number[] = [];
      for (let after: Position | null = [1_000, 0]; after !== null; ) {
        let bytes = 0;
        const inspect = (id: number) => {
          expect(bytes).toBeLessThan(maxBytes);
          bytes += 2;
          return { isMatch: id % 2 === 0, bytes: 2 };
        };
        const bounded: Search = {
          ...search('red', maxExamined, after),
          inspection: { inspect, maxBytes },
        };
        const page: ReturnType<typeof findBounded> = findBounded(db, bounded, limit);
        expect(page.found.length).toBeLessThanOrEqual(limit);
        found.push(...page.found.map(({ id }) => id));
        after = page.next;
      }
      const expected = rows
        .map((row, index) => ({ ...row, id: index + 1 }))
        .filter(({ color, isGood, id }) => color === 'red' && isGood === 1 && id % 2 === 0)
        .toSorted((a, b) => b.at - a.at || b.id - a.id);
      expect(found).toEqual(expected.map(({ id }) => id));
    }),
    { numRuns: 200 },
  );
});

it('a page ends early, even without a row, once it has examined its number of rows', () => {
  const rows = Array.from({ length: 20 }, (_, at) => ({
    at,
    color: 'red',
    isGood: at === 0 ? 1 : 0,
  }));
  const db = tableOf(rows);
  const first = findBounded(db, search('red', 8), 5);
  expect(first).toEqual({ found: [], next: [12, 13] });
  const second = findBounded(db, search('red', 8, first.next ?? []), 5);
  expect(second).toEqual({ found: [], next: [4, 5] });
  expect(findBounded(db, search('red', 8, second.next ?? []), 5)).toEqual({
    found: [{ id: 1, position: [0, 1] }],
    next: null,
  });
});

/** The oldest 200 of 1,000 rows are blue, and only the oldest of them is good. */
const OLD_BLUE = Array.from({ length: 1_000 }, (_, at) => ({
  at,
  color: at < 200 ? 'blue' : 'red',
  isGood: at === 0 ? 1 : 0,
}));

it.each([
  { of: 'whose counts', rowMs: 0, countMs: 6, examined: 300 },
  { of: 'whose rows', rowMs: 1, countMs: 0, examined: 10 },
])(
  'a table $of come from the disk is walked instead of gathered, in short pages if its rows are slow',
  ({ rowMs, countMs, examined }) => {
    const db = tableOf(OLD_BLUE);
    let now = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => (now += rowMs));
    const value = db.value.bind(db) as (...args: unknown[]) => unknown;
    vi.spyOn(db, 'value').mockImplementation((...args: unknown[]) => {
      now += countMs;
      return value(...args);
    });
    const { found, next } = findBounded(db, search('blue', 300), 5);
    expect([found, next]).toEqual([[], [1_000 - examined, 1_001 - examined]]);
  },
);
