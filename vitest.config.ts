import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { longestFirst } from './test/support/longest-first.ts';
import { MEMORY } from './test/support/memory.ts';
import { PATIENCE } from './test/support/patience.ts';

/** The files that take longest on an idle machine. */
const LONGEST = [
  '/commands/run/',
  '/http/fuzz.test.ts',
  '/chain.test.ts',
  '/commands/',
  '/scenarios/',
  '/test/redis/',
];

export default defineConfig({
  test: {
    ...PATIENCE,
    include: ['test/**/*.test.ts'],
    sequence: { sequencer: longestFirst(LONGEST) },
    // A process per file would load all modules again, which takes as long as the tests.
    isolate: false,
    // No test simulates a power failure, so no test needs durable writes.
    env: MEMORY === undefined ? {} : { TMPDIR: MEMORY },
    // Many tests wait for processes and timers.
    maxWorkers: availableParallelism() + 2,
  },
});
