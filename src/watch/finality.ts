import { Status } from '../domain/submission.ts';
import type { Pacer } from '../pacing/scheduler.ts';
import type { RecordedObservation } from './ports.ts';

/** A submission was found final for the first time, and that is committed. Times are epoch milliseconds. */
export type Finality = {
  upstream: string;
  at: number;
  trackedAt: number;
  /** It became final after this: it was tracked then, or a poll of it or of another one of its block found it open. */
  after: number;
  /** Requests that were made for it. */
  polls: number;
};

/** When a block became final: after `after`, when a poll of a submission in it found that one open, and by `by`. */
type Bounds = { after: number; by: number };

/** Submissions of one block are found final within minutes of each other. */
const BLOCKS = 64;

/** Bounds when what is found final became so, for the statistics about detection lag. */
export class FinalityBounds {
  readonly #blocks = new Map<number, Bounds>();

  /** Those among the recorded, before the pacer learns from them: it forgets what is final. */
  of(recorded: readonly RecordedObservation[], pacer: Pick<Pacer, 'openAt'>): Finality[] {
    const found = recorded.flatMap(({ observation, result, previousStatus, submission }) => {
      if (observation.kind !== 'finalized' || previousStatus === Status.finalized || !result.change) return [];
      const { at, blockNumber } = observation;
      const { upstream, trackedAt, polls } = submission;
      const openAt = pacer.openAt(submission.submissionId);
      if (blockNumber !== null) this.#learn(blockNumber, { after: openAt, by: at });
      return [{ blockNumber, finality: { upstream, at, trackedAt, after: Math.max(trackedAt, openAt), polls } }];
    });
    return found.map(({ blockNumber, finality }) => {
      const block = blockNumber === null ? undefined : this.#blocks.get(blockNumber);
      return { ...finality, after: Math.max(finality.after, Math.min(block?.after ?? finality.after, finality.at)) };
    });
  }

  /** A submission that was open after its block was final appears late, and tells nothing about the block. */
  #learn(block: number, { after, by }: Bounds): void {
    const known = this.#blocks.get(block);
    if (known) {
      known.by = Math.min(known.by, by);
      if (after < known.by) known.after = Math.max(known.after, after);
      known.after = Math.min(known.after, known.by);
      return;
    }
    this.#blocks.set(block, { after, by });
    const [oldest] = this.#blocks.keys();
    if (this.#blocks.size > BLOCKS && oldest !== undefined) this.#blocks.delete(oldest);
  }
}
