import { classify, type UpstreamResponse } from '../domain/classify.ts';
import type { Clock } from '../domain/clock.ts';
import type { PollBatch, PollEngine } from '../watch/ports.ts';

/** One request to the upstream of that name. Never rejects. */
export type SendPoll = (upstream: string, submissionId: string) => Promise<UpstreamResponse>;

/** The hands of this process: asks about every submission of a batch at once. The pacer's batches respect the budget. */
export function createLocalEngine(deps: { ask: SendPoll; clock: Pick<Clock, 'now'> }): PollEngine {
  const { ask, clock } = deps;
  return {
    async poll(batch: PollBatch, report) {
      await Promise.all(
        batch.submissionIds.map(async (submissionId) => {
          const askedAt = clock.now();
          const answer = await ask(batch.upstream, submissionId);
          const at = clock.now();
          report({ submissionId, at, durationMs: at - askedAt, ...classify(submissionId, answer) });
        }),
      );
    },
  };
}
