import { defineConfig } from 'vitest/config';
import { PATIENCE } from './test/support/patience.ts';

/** Tests with a node of a chain that was written by others: `.ci/chopsticks`. */
export default defineConfig({
  test: {
    ...PATIENCE,
    include: ['test/polling/chain/*.node.ts'],
  },
});
