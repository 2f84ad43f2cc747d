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

/** Replaces packages by models, which must not reach the modules of other files. */
const WITH_MODELS = 'test/simulation/redis/conformance.test.ts';

const shared = {
  // No test simulates a power failure, so no test needs durable writes.
  env: MEMORY === undefined ? {} : { TMPDIR: MEMORY },
  testTimeout: 20_000,
  hookTimeout: 20_000,
  // The default is one second, which a pause of the machine exceeds.
  expect: { poll: { timeout: 10_000 } },
  // CI machines pause and share their cores. RetryReporter prints why the first attempt failed.
  retry: process.env.CI ? 2 : 0,
  // Many tests wait for processes and timers.
  maxWorkers: availableParallelism() + 2,
};

export default defineConfig({
  test: {
    reporters: ['default', new RetryReporter()],
    sequence: { sequencer: longestFirst(LONGEST) },
    projects: [
      {
        test: {
          ...shared,
          name: 'shared',
          include: ['test/**/*.test.ts'],
          exclude: [WITH_MODELS],
          // A process per file would load all modules again, which takes as long as the tests.
          isolate: false,
        },
      },
      { test: { ...shared, name: 'models', include: [WITH_MODELS] } },
    ],
  },
});
