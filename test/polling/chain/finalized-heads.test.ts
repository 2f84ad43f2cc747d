import { expect, it } from 'vitest';
import { FinalizedHeads } from '../../../src/polling/chain/finalized-heads.ts';

const SLOT_MS = 20_000;

/** Nodes announce blocks 1 to 10, one per slot, each with its delay; `at`: the end. */
function announced(
  delays: Record<string, number>,
  { blocks = {} }: { blocks?: Record<string, string> } = {},
) {
  const names = Object.keys(delays);
  const heads = new FinalizedHeads(names);
  const announcements = names.flatMap((name) =>
    Array.from({ length: 10 }, (_, index) => {
      const at = (index + 1) * SLOT_MS + (delays[name] as number);
      return { name, number: index + 1, at };
    }),
  );
  const end = 10.9 * SLOT_MS;
  const news = announcements
    .filter(({ at }) => at <= end)
    .sort((a, b) => a.at - b.at)
    .flatMap(({ name, number, at }) => {
      const block = `${blocks[name] ?? 'block'} ${number}`;
      return heads.observe(name, { number, block }, at) ?? [];
    });
  const states = () =>
    Object.fromEntries([...heads.distrusted(end)].map(([name, { state }]) => [name, state]));
  return { heads, news, states, end };
}

it('the first announcement of a number counts', () => {
  const { heads, news, states, end } = announced({ a: 3_000, b: 200 });
  expect(news.map(({ number, at }) => at - number * SLOT_MS)).toEqual(Array(10).fill(200));
  expect(heads.finalizedAt(7, end)).toBe(7 * SLOT_MS + 200);
  expect(states()).toEqual({});
});

it.each<[string, Record<string, number>, Record<string, string>]>([
  ['that announces blocks a slot later than another one', { a: 21_000, b: 200 }, { a: 'behind' }],
  ['that is silent', { a: 200, b: 1e9, c: 300 }, {}],
  ['that two others follow a slot later', { a: 0, b: 21_000, c: 21_200 }, { a: 'early' }],
  ['that is late by ten seconds', { a: 10_000, b: 200 }, {}],
])('judges a node %s', (_, delays, expected) => {
  expect(announced(delays).states()).toEqual(expected);
});

it('a node that calls its newest block final is early, one that does not shows who is behind', () => {
  for (const [best, expected] of [
    [10, { a: 'early' }],
    [11, { b: 'behind' }],
  ] as const) {
    const { heads, states, end } = announced({ a: 0, b: 21_000 });
    expect(heads.isAhead('a', end)).toBe(true);
    expect(heads.newest?.number).toBe(10);
    heads.observeBest('a', best, end);
    expect(states()).toEqual(expected);
    expect(heads.newest?.number).toBe(best === 10 ? 9 : 10);
  }
});

it('most nodes are right about a block, and the first one of two', () => {
  const delays = { a: 0, b: 200, c: 400 };
  const fork = { blocks: { a: 'other' } };
  expect(announced(delays, fork).states()).toEqual({ a: 'another_block' });
  expect(announced({ a: 0, b: 200 }, fork).states()).toEqual({ b: 'another_block' });
});

it('blocks that became final together, and are read late, make no node behind', () => {
  const heads = new FinalizedHeads(['a', 'b']);
  for (const name of ['a', 'b']) heads.observe(name, { number: 1 }, 0);
  for (const name of ['a', 'b'])
    for (let number = 2; number <= 500; number += 1) {
      heads.observe(name, { number }, 600_000);
      expect(heads.distrusted(600_000).size).toBe(0);
    }
});

it('a node with another block 0 than the stored one is not used', () => {
  const heads = new FinalizedHeads(['a', 'b'], '0x1');
  heads.connect('a', '0x2');
  heads.connect('b', '0x1');
  expect(heads.observe('a', { number: 9 }, 0)).toBeNull();
  expect(heads.observe('b', { number: 5 }, 0)).toMatchObject({ number: 5 });
  expect([...heads.distrusted(0).keys()]).toEqual(['a']);
});
