import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { longestFirst } from './test/support/longest-first.ts';
import { MEMORY } from './test/support/memory.ts';
import { PATIENCE } from './test/support/patience.ts';

/** Tests of the dashboard in Chromium. */
export default defineConfig({
  test: {
    ...PATIENCE,
    include: ['test/dashboard/**/*.browser.ts'],
    maxWorkers: availableParallelism(),
    // The files of a worker share a browser.
    isolate: false,
    sequence: {
      sequencer: longestFirst(['/accessibility.', '/sessions.', '/submissions/', '/pages.']),
    },
    // As in vitest.config.ts.
    env: MEMORY === undefined ? {} : { TMPDIR: MEMORY },
  },
});
