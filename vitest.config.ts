import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { longestFirst } from './test/support/longest-first.ts';
import { MEMORY } from './test/support/memory.ts';
import { RetryReporter } from './test/support/retry-reporter.ts';

/** The files that take longest on an idle machine. */
const LONGEST = [
  '/scenarios/reload.test.ts',
  '/redis-link.test.ts',
  '/test/pacing/',
  '/commands/run/',
  '/http/fuzz.test.ts',
  '/chain.test.ts',
  '/commands/',
  '/scenarios/',
  '/test/redis/',
];

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    reporters: ['default', new RetryReporter()],
    sequence: { sequencer: longestFirst(LONGEST) },
    // A process per file would load all modules again, which takes as long as the tests.
    isolate: false,
    // No test simulates a power failure, so no test needs durable writes.
    env: MEMORY === undefined ? {} : { TMPDIR: MEMORY },
    // A test fails at a step, which gives up earlier; only computations use all of it, on a machine
    // that does ten other things.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // The default is one second, which a pause of the machine exceeds.
    expect: { poll: { timeout: 10_000 } },
    // CI machines pause and share their cores. RetryReporter prints why the first attempt failed.
    retry: process.env.CI ? 2 : 0,
    // Many tests wait for processes and timers.
    maxWorkers: availableParallelism() + 2,
  },
});
