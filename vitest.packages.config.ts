import { defineConfig } from 'vitest/config';
import { longestFirst } from './test/support/longest-first.ts';
import { RetryReporter } from './test/support/retry-reporter.ts';

/** Tests of the packed and installed packages. They install packages from the registry. */
export default defineConfig({
  test: {
    include: ['test/packages/*.install.ts'],
    sequence: { sequencer: longestFirst(['/image.', '/docs.', '/helm.', '/browser.']) },
    globalSetup: 'test/packages/support/pack.ts',
    reporters: ['default', new RetryReporter()],
    // As in vitest.config.ts.
    retry: process.env.CI ? 1 : 0,
    testTimeout: 180_000,
    hookTimeout: 300_000,
  },
});
