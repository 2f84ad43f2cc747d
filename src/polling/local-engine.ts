import type { Clock } from '../lib/clock.ts';
import { classify, type UpstreamResponse } from '../submissions/classify.ts';
import type { PollBatch, PollEngine } from '../submissions/ports.ts';

/** Sends one request to an upstream. Never rejects. */
export type SendPoll = (upstream: string, submissionId: string) => Promise<UpstreamResponse>;

/**
 * Polls all submissions of a batch at once from this process. The scheduler's batches respect the
 * request budget.
 */
export function createLocalEngine(deps: {
  sendPoll: SendPoll;
  clock: Pick<Clock, 'now'>;
}): PollEngine {
  const { sendPoll, clock } = deps;
  return {
    async poll(batch: PollBatch, report) {
      await Promise.all(
        batch.submissionIds.map(async (submissionId) => {
          const sentAt = clock.now();
          const response = await sendPoll(batch.upstream, submissionId);
          const at = clock.now();
          report({
            submissionId,
            at,
            durationMs: at - sentAt,
            ...classify(submissionId, response),
          });
        }),
      );
    },
  };
}
