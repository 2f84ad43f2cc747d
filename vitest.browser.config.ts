import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { longestFirst } from './test/support/longest-first.ts';
import { MEMORY } from './test/support/memory.ts';
import { RetryReporter } from './test/support/retry-reporter.ts';

/** Tests of the dashboard in Chromium. */
export default defineConfig({
  test: {
    include: ['test/dashboard/**/*.browser.ts'],
    maxWorkers: availableParallelism(),
    // The files of a worker share a browser.
    isolate: false,
    sequence: {
      sequencer: longestFirst(['/accessibility.', '/sessions.', '/submissions/', '/pages.']),
    },
    // As in vitest.config.ts.
    env: MEMORY === undefined ? {} : { TMPDIR: MEMORY },
    expect: { poll: { timeout: 10_000 } },
    retry: process.env.CI ? 2 : 0,
    reporters: ['default', new RetryReporter()],
  },
});
