import type { Clock } from '../lib/clock.ts';
import type { Classification, Observation } from '../submissions/classify.ts';

export type PollBatch = { upstream: string; submissionIds: readonly string[] };

/**
 * Sends polls, which are idempotent reads: a batch may be lost, an id reported twice. `report` is
 * called once per submission. Resolves when the batch has ended; never rejects.
 */
export type PollEngine = {
  poll(batch: PollBatch, report: (observation: Observation) => void): Promise<void>;
};

/** Sends one poll to an upstream, and returns what it answered. Never rejects. */
export type SendPoll = (upstream: string, submissionId: string) => Promise<Classification>;

/** Polls a batch at once from this process. The batches respect the request budget. */
export function createLocalEngine(deps: {
  sendPoll: SendPoll;
  clock: Pick<Clock, 'now' | 'elapsed'>;
}): PollEngine {
  const { sendPoll, clock } = deps;
  return {
    async poll(batch: PollBatch, report) {
      await Promise.all(
        batch.submissionIds.map(async (submissionId) => {
          const sentAt = clock.elapsed();
          const answer = await sendPoll(batch.upstream, submissionId);
          const durationMs = Math.floor(clock.elapsed() - sentAt);
          report({ submissionId, at: clock.now(), durationMs, ...answer });
        }),
      );
    },
  };
}
