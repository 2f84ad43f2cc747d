import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { jsonStream } from '../../src/http/write-in-turns.ts';

it('a response with many items leaves the event loop to other work between parts of them', async () => {
  let turns = 0;
  const count = () => {
    turns += 1;
    pending = setImmediate(count);
  };
  let pending = setImmediate(count);
  const seenAt: number[] = [];
  const items = Array.from({ length: 2_600 }, (_, index) => index);
  const toBody = (item: number) => {
    seenAt.push(turns);
    return { item };
  };
  const written = await text(jsonStream({ a: 1 }, ['list', items, toBody]));
  clearImmediate(pending);
  expect(JSON.parse(written)).toEqual({ a: 1, list: items.map((item) => ({ item })) });
  const perTurn = Map.groupBy(seenAt, (turn) => turn);
  expect(Math.max(...[...perTurn.values()].map(({ length }) => length))).toBeLessThanOrEqual(500);
});

it.each([[0], [1]])('a list of %i items in a stream is one JSON object', async (count) => {
  const items = Array.from({ length: count }, (_, index) => index);
  const written = await text(jsonStream({ a: 1 }, ['list', items, (item) => item]));
  expect(JSON.parse(written)).toEqual({ a: 1, list: items });
});
