import { expect, it } from 'vitest';
import { textOf } from '../../../../src/http/routes/reports/reports.ts';

it('a report with many lines leaves the event loop to other work between parts of them', async () => {
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
  let text = '';
  for await (const part of textOf('head ', items, write, 'tail')) text += part;
  clearImmediate(pending);
  expect(text).toBe(`head ${items.join(' ')} tail`);
  const perTurn = Map.groupBy(seenAt, (turn) => turn);
  expect(Math.max(...[...perTurn.values()].map(({ length }) => length))).toBeLessThanOrEqual(500);
});
