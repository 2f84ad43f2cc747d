import { defineConfig } from 'vitest/config';
import { longestFirst } from './test/support/longest-first.ts';

/** Tests of the packed and installed packages. They install packages from the registry. */
export default defineConfig({
  test: {
    include: ['test/packages/*.install.ts'],
    sequence: { sequencer: longestFirst(['/image.', '/docs.', '/helm.', '/browser.']) },
    globalSetup: 'test/packages/support/pack.ts',
    testTimeout: 180_000,
    hookTimeout: 300_000,
  },
});
