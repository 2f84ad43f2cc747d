import type { FinalizedHead } from '../pacing/index.ts';
import type { Observation } from '../submissions/classify.ts';
import { MAX_RECENT_POLLS, type RecentPoll } from '../submissions/recent-poll.ts';

const MAX_HEADS = 500;

/** The newest polls of one upstream, and the newest final blocks of its chain. */
export class RecentActivity {
  readonly #polls: (RecentPoll & { submissionId: string })[] = [];
  readonly #heads: FinalizedHead[] = [];

  addPoll({ submissionId, at, durationMs, kind: result }: Observation): void {
    this.#polls.push({ submissionId, at, durationMs, result });
    if (this.#polls.length > MAX_RECENT_POLLS) this.#polls.shift();
  }

  /** Ignores a head that is announced again, such as by a second node that is behind the first. */
  addHead({ number, at }: FinalizedHead): void {
    if (this.#heads.some((head) => head.number === number)) return;
    this.#heads.push({ number, at });
    if (this.#heads.length > MAX_HEADS) this.#heads.shift();
  }

  /** Oldest first. */
  since(at: number): { polls: RecentPoll[]; heads: FinalizedHead[] } {
    const isRecent = (one: { at: number }) => one.at >= at;
    return { polls: this.#polls.filter(isRecent), heads: this.#heads.filter(isRecent) };
  }

  /** Returns the newest polls of a submission, oldest first. */
  pollsOf(submissionId: string, limit: number): RecentPoll[] {
    return this.#polls.filter((poll) => poll.submissionId === submissionId).slice(-limit);
  }
}
