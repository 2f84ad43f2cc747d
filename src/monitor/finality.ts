import type { Pacer } from './pacer.ts';
import type { Recorded } from './ports.ts';
import { Status } from './submission.ts';

/** A submission was found final for the first time, and that is committed. Times are epoch milliseconds. */
export type Finality = {
  upstream: string;
  at: number;
  trackedAt: number;
  /**
   * It became final after this: it was tracked then, a question found it open, or its block was not final, as far as the
   * learned clock of the blocks tells.
   */
  after: number;
  /** Requests that were made for it. */
  polls: number;
};

/**
 * Those among the recorded. To be begun before the pacer learns from them, because it forgets what is final, and called
 * afterwards, because only then the block is known.
 */
export function finalitiesOf(
  recorded: readonly Recorded[],
  pacer: Pick<Pacer, 'openAt' | 'finalAfter'>,
): () => Finality[] {
  const found = recorded.flatMap(({ observation, outcome, previousStatus, submission }) => {
    if (observation.kind !== 'finalized' || previousStatus === Status.finalized || !outcome.change) return [];
    const { at, blockNumber } = observation;
    const { upstream, trackedAt, polls } = submission;
    const after = Math.max(trackedAt, pacer.openAt(submission.submissionId));
    return [{ blockNumber, finality: { upstream, at, trackedAt, after, polls } }];
  });
  return () =>
    found.map(({ blockNumber, finality }) => {
      const blockAfter = blockNumber === null ? finality.after : pacer.finalAfter(blockNumber);
      return { ...finality, after: Math.max(finality.after, Math.min(blockAfter, finality.at)) };
    });
}
