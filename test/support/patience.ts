/** Only a failure takes as long: tests wait for events and conditions, never for a time. */
export const STEP_MS = 120_000;

/**
 * Limits of all tests. A test fails at a step, because one that fails by its own timeout continues
 * to run beside the next test.
 */
export const PATIENCE = {
  testTimeout: 5 * STEP_MS,
  hookTimeout: 5 * STEP_MS,
  expect: { poll: { timeout: STEP_MS } },
};
