import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { MEMORY } from './test/support/memory.ts';
import { RetryReporter } from './test/support/retry-reporter.ts';

/** Starts the longest tests first, so that none of them runs alone at the end. */
class CrashTestsFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isCrashTest = ({ moduleId }: TestSpecification) => /crash\.test\.ts$/.test(moduleId);
    return [...sorted.filter(isCrashTest), ...sorted.filter((file) => !isCrashTest(file))];
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Many tests wait for processes and timers.
    maxWorkers: availableParallelism() + 1,
    // A process per file would load all modules again, which takes as long as the tests.
    isolate: false,
    sequence: { sequencer: CrashTestsFirst },
    // No test simulates a power failure, so no test needs durable writes.
    env: MEMORY === undefined ? {} : { TMPDIR: MEMORY },
    testTimeout: 20_000,
    // CI machines pause and share their cores. RetryReporter prints why the first attempt failed.
    retry: process.env.CI ? 1 : 0,
    reporters: ['default', new RetryReporter()],
    hookTimeout: 20_000,
  },
});
