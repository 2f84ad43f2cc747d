import type { Classification, Observation } from '../submissions/classify.ts';

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

/** Sends one poll to an upstream, and returns what it answered. Never rejects. */
export type SendPoll = (upstream: string, submissionId: string) => Promise<Classification>;

/**
 * Polls all submissions of a batch at once from this process. The scheduler's batches respect the
 * request budget.
 */
export function createLocalEngine(deps: {
  sendPoll: SendPoll;
  clock: { now(): number };
}): PollEngine {
  const { sendPoll, clock } = deps;
  return {
    async poll(batch: PollBatch, report) {
      await Promise.all(
        batch.submissionIds.map(async (submissionId) => {
          const sentAt = clock.now();
          const answer = await sendPoll(batch.upstream, submissionId);
          const at = clock.now();
          report({ submissionId, at, durationMs: at - sentAt, ...answer });
        }),
      );
    },
  };
}
