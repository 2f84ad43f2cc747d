import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { jsonStream, textOf } from '../../src/http/write-in-turns.ts';

it('a response with many items leaves the event loop to other work between parts of them', async () => {
  let turns = 0;
  const count = () => {
    turns += 1;
    pending = setImmediate(count);
  };
  let pending = setImmediate(count);
  const seenAt: number[] = [];
  const items = Array.from({ length: 2_600 }, (_, index) => index);
  const write = (item: number) => {
    seenAt.push(turns);
    return `${item} `;
  };
  let written = '';
  for await (const part of textOf('head ', items, write, 'tail')) written += part;
  clearImmediate(pending);
  expect(written).toBe(`head ${items.join(' ')} tail`);
  const perTurn = Map.groupBy(seenAt, (turn) => turn);
  expect(Math.max(...[...perTurn.values()].map(({ length }) => length))).toBeLessThanOrEqual(500);
});

it.each([[0], [1], [600]])(
  'a list of %i items in a stream is one JSON object with the fields around it',
  async (count) => {
    const items = Array.from({ length: count }, (_, index) => index);
    const shown = (item: number) => ({ item });
    expect(JSON.parse(await text(jsonStream({ a: 1 }, ['list', items, shown])))).toEqual({
      a: 1,
      list: items.map(shown),
    });
    const around = JSON.parse(await text(jsonStream({ a: 1 }, ['list', items, shown], { z: [1] })));
    expect(Object.entries(around)).toEqual([
      ['a', 1],
      ['list', items.map(shown)],
      ['z', [1]],
    ]);
  },
);
