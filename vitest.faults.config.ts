import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { longestFirst } from './test/support/longest-first.ts';
import { PATIENCE } from './test/support/patience.ts';

/** The files that take longest on an idle machine. */
const LONGEST = [
  '/detection-lag.',
  '/redis-fails.',
  '/kill-',
  '/simulation.',
  '/failing-disk.',
  '/power-loss.',
  '/canary.',
];

process.env.TEST_SEED ??= String(Date.now() % 2 ** 31);

const shared = {
  ...PATIENCE,
  // Some start dozens of processes.
  testTimeout: 3 * PATIENCE.testTimeout,
  globalSetup: 'test/faults/support/print-seed.ts',
  isolate: false,
};

const faults = {
  ...shared,
  // The tests mostly wait for processes.
  maxWorkers: availableParallelism() + 2,
  sequence: { groupOrder: 0 },
};

export default defineConfig({
  test: {
    sequence: { sequencer: longestFirst(LONGEST) },
    projects: [
      {
        test: {
          ...faults,
          name: 'faults',
          include: ['test/**/*.fault.ts', 'test/pacing/*.world.ts'],
        },
      },
      {
        test: {
          ...shared,
          name: 'load',
          include: ['test/faults/**/*.load.ts'],
          // Measurements run alone on the machine.
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
