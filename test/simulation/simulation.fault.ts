import { expect, it } from 'vitest';
import { runProcess } from './run-process.ts';

it('repeats a simulation with the same seed, to the same bytes of the ledger', async () => {
  const settings = { seed: 8, days: 0.1, without: new Set<string>() };
  const runs = await Promise.all([1, 2].map(() => runProcess(settings)));
  // The lines of the log name the folder of the run.
  const [first, second] = runs.map(({ lines: _, ...result }) => result);
  expect(first?.defects).toEqual([]);
  expect(second).toEqual(first);
});
