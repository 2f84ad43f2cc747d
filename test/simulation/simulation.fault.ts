import { expect, it } from 'vitest';
import { runProcess } from './run-process.ts';

it('repeats a simulation with the same seed, to the same bytes of the ledger', async () => {
  const settings = { seed: 8, days: 0.3, without: new Set<string>() };
  const runs = await Promise.all([1, 2].map(() => runProcess(settings)));
  expect(runs.map(({ defects }) => defects)).toEqual([[], []]);
  expect(runs[1]).toEqual(runs[0]);
}, 180_000);
