import { expect, it } from 'vitest';
import { inTurns } from '../../../../src/http/routes/reports/build-report.ts';

it('a report with many lines leaves the event loop to other work between parts of them', async () => {
  let turns = 0;
  const count = () => {
    turns += 1;
    pending = setImmediate(count);
  };
  let pending = setImmediate(count);
  const items = Array.from({ length: 2_600 }, (_, index) => index);
  const seenAt = await inTurns(items, (item) => [item, turns] as const);
  clearImmediate(pending);
  expect(seenAt.map(([item]) => item)).toEqual(items);
  const perTurn = Map.groupBy(seenAt, ([, turn]) => turn);
  expect(Math.max(...[...perTurn.values()].map(({ length }) => length))).toBeLessThanOrEqual(500);
});
