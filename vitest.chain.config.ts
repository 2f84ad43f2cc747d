import { defineConfig } from 'vitest/config';
import { RetryReporter } from './test/support/retry-reporter.ts';

/** Tests with a node of a chain that was written by others: `.ci/chopsticks`. */
export default defineConfig({
  test: {
    include: ['test/polling/chain/*.node.ts'],
    reporters: ['default', new RetryReporter()],
    // As in vitest.config.ts.
    retry: process.env.CI ? 1 : 0,
    // On a busy machine the node compiles its runtime for a minute.
    testTimeout: 200_000,
    hookTimeout: 200_000,
    expect: { poll: { timeout: 10_000 } },
  },
});
