import type { FinalizedHead } from '../pacing/index.ts';
import type { Observation } from '../submissions/classify.ts';
import { MAX_RECENT_POLLS, type RecentPoll } from '../submissions/recent-poll.ts';

const MAX_HEADS = 500;

/** The newest polls of one upstream, and the newest final blocks of its chain. */
export class RecentActivity {
  readonly #polls: (RecentPoll & { submissionId: string })[] = [];
  /** The same polls by submission. */
  readonly #bySubmission = new Map<string, RecentPoll[]>();
  readonly #heads: FinalizedHead[] = [];

  addPoll({ submissionId, at, durationMs, kind: result }: Observation): void {
    const poll = { submissionId, at, durationMs, result };
    this.#polls.push(poll);
    const known = this.#bySubmission.get(submissionId);
    if (known) known.push(poll);
    else this.#bySubmission.set(submissionId, [poll]);
    if (this.#polls.length > MAX_RECENT_POLLS) this.#dropOldest();
  }

  #dropOldest(): void {
    const { submissionId = '' } = this.#polls.shift() ?? {};
    const known = this.#bySubmission.get(submissionId);
    known?.shift();
    if (known?.length === 0) this.#bySubmission.delete(submissionId);
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
    return this.#bySubmission.get(submissionId)?.slice(-limit) ?? [];
  }
}
