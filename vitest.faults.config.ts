import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { longestFirst } from './test/support/longest-first.ts';
import { MEMORY } from './test/support/memory.ts';
import { PATIENCE } from './test/support/patience.ts';

/** The files that take longest on an idle machine. */
const LONGEST = [
  '/kill-',
  '/redis-fails.',
  '/upstream-',
  '/power-loss.',
  '/failing-disk.',
  '/redis-link.',
  '/stall.',
];

process.env.TEST_SEED ??= String(Date.now() % 2 ** 31);

export default defineConfig({
  test: {
    ...PATIENCE,
    include: ['test/**/*.fault.ts', 'test/pacing/*.world.ts'],
    // Some start dozens of processes.
    testTimeout: 3 * PATIENCE.testTimeout,
    globalSetup: ['test/faults/support/print-seed.ts', 'test/faults/support/build.ts'],
    isolate: false,
    // The tests mostly wait for processes.
    maxWorkers: availableParallelism() + 2,
    sequence: { sequencer: longestFirst(LONGEST) },
    // As in vitest.config.ts. The loss of power is simulated on a recorded disk.
    env: { TEST_MAIN: 'dist/main.js', ...(MEMORY !== undefined && { TMPDIR: MEMORY }) },
  },
});
