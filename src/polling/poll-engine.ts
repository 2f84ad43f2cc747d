import type { Observation } from '../submissions/classify.ts';

/** Submissions of one upstream to poll, one request each. */
export type PollBatch = { upstream: string; submissionIds: readonly string[] };

/**
 * Sends polls. A poll is an idempotent read, so a batch may be lost, and an id may be reported
 * twice. `report` is called once per submission, as soon as its result is known. The promise
 * resolves when the batch has ended; it never rejects, because a failed request is an observation
 * too.
 */
export type PollEngine = {
  poll(batch: PollBatch, report: (observation: Observation) => void): Promise<void>;
};
