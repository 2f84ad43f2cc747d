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

/** Losses of data at random moments are rare: a retry would hide them. */
const NOT_RETRIED = ['test/faults/power-loss/*.fault.ts', 'test/faults/disk/failing-disk.fault.ts'];

process.env.TEST_SEED ??= String(Date.now() % 2 ** 31);

const shared = {
  ...PATIENCE,
  // Some start dozens of processes.
  testTimeout: 3 * PATIENCE.testTimeout,
  // Some still depend on how far a process is when it is killed.
  retry: process.env.CI ? 1 : 0,
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
          exclude: NOT_RETRIED,
        },
      },
      { test: { ...faults, name: 'losses', include: NOT_RETRIED, retry: 0 } },
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
