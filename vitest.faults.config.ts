import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { RetryReporter } from './test/support/retry-reporter.ts';

/** Starts the longest tests first, so that none of them runs alone at the end. */
class KillsFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification) => moduleId.includes('/kill-');
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

process.env.TEST_SEED ??= String(Date.now() % 2 ** 31);

const shared = {
  globalSetup: 'test/faults/support/print-seed.ts',
  isolate: false,
  // As in vitest.config.ts.
  retry: process.env.CI ? 1 : 0,
  // The longest tests take minutes on a shared machine.
  testTimeout: 500_000,
  hookTimeout: 60_000,
};

export default defineConfig({
  test: {
    reporters: ['default', new RetryReporter()],
    sequence: { sequencer: KillsFirst },
    projects: [
      {
        test: {
          ...shared,
          name: 'faults',
          include: ['test/faults/**/*.fault.ts'],
          // The tests mostly wait for processes.
          maxWorkers: availableParallelism() + 1,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...shared,
          name: 'load',
          include: ['test/faults/**/*.load.ts'],
          // Measurements run alone on the machine.
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
