import type { Observation } from '../domain/classify.ts';
import type { Entry } from './entry.ts';
import { LostSubmissions } from './lost-submissions.ts';

const MAX_CANDIDATES = 100;

/**
 * The submissions to probe an upstream with during an outage. Every second probe polls one that the upstream has returned lately, because
 * an error for an unknown id may concern that id only. The upstream may have lost those, so the other probes alternate between the newest
 * submissions that it has never returned and the submission that has been due longest. Each group is polled in turn, so that one
 * submission that the upstream returns is enough to end the outage.
 */
export class ProbeCandidates {
  /** The next one is the first. */
  readonly #returned = new Set<Entry>();
  /** The next one is the last. */
  #unreturned = new Set<Entry>();
  readonly #lost = new LostSubmissions();
  #seen = 0;
  #probes = 0;

  /** Returns the submission for the next probe. `longestDue`: the one that has been due longest. */
  pick(mayPoll: (entry: Entry) => boolean, longestDue: Entry | undefined): Entry | undefined {
    const isReturned = this.#probes % 2 === 0;
    const group = isReturned ? [...this.#returned] : this.#probes % 4 === 1 ? [...this.#unreturned].reverse() : [];
    return group.find(mayPoll) ?? longestDue;
  }

  /** Records that a submission was polled as a probe. */
  probed(entry: Entry): void {
    this.#probes++;
    if (this.#returned.delete(entry)) this.#returned.add(entry);
    if (this.#unreturned.delete(entry)) this.#unreturned = new Set([entry, ...this.#unreturned]);
  }

  /** Adds a newly scheduled submission, which the upstream may have returned before. */
  add(entry: Entry): void {
    if (entry.seen) this.#seen++;
    else addTo(this.#unreturned, entry);
  }

  /**
   * Returns what the earlier responses say about an observation: whether the upstream has returned the submission before, and whether
   * it has returned any. Lost submissions do not count. `goodResponses`: of the upstream so far.
   */
  known(entry: Entry | undefined, observation: Observation, goodResponses: number) {
    const isMissing = entry?.seen === true && observation.kind === 'not_found' && observation.ambiguous;
    const isLost = isMissing && this.#lost.add(entry, goodResponses);
    return { seenBefore: entry?.seen === true && !isLost, seenAny: this.#seen > this.#lost.size };
  }

  /** Records that the upstream has returned the submission. */
  markSeen(entry: Entry): void {
    if (!entry.seen) this.#seen++;
    entry.seen = true;
    this.#lost.remove(entry);
    this.#unreturned.delete(entry);
    this.#returned.delete(entry);
    addTo(this.#returned, entry);
  }

  remove(entry: Entry): void {
    this.#returned.delete(entry);
    this.#unreturned.delete(entry);
    this.#lost.remove(entry);
    if (entry.seen) this.#seen--;
  }
}

/** Adds the newest candidate. */
function addTo(group: Set<Entry>, entry: Entry): void {
  group.add(entry);
  if (group.size > MAX_CANDIDATES) for (const first of group) return void group.delete(first);
}
