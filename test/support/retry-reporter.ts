import type { Reporter, TestCase } from 'vitest/node';

/**
 * Prints why a test failed that passed in a later attempt. The default reporter prints only that it
 * was retried.
 */
export class RetryReporter implements Reporter {
  onTestCaseResult(test: TestCase): void {
    const { state, errors } = test.result();
    if (state !== 'passed' || errors === undefined || errors.length === 0) return;
    console.log(`\nPassed after a retry: ${test.module.relativeModuleId} > ${test.fullName}`);
    for (const error of errors) {
      console.log(error.stack ?? error.message);
      if (error.diff !== undefined) console.log(error.diff);
    }
  }
}
