import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { longestFirst } from './test/support/longest-first.ts';
import { PATIENCE } from './test/support/patience.ts';

/** Tests of the packed and installed packages. They install packages from the registry. */
export default defineConfig({
  test: {
    ...PATIENCE,
    include: ['test/packages/*.install.ts'],
    sequence: { sequencer: longestFirst(['/image.', '/docs.', '/helm.', '/browser.']) },
    // The tests mostly wait for the registry and for processes.
    maxWorkers: availableParallelism() + 2,
    globalSetup: 'test/packages/support/pack.ts',
  },
});
