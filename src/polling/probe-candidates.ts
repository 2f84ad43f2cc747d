import type { Observation } from '../submissions/classify.ts';
import type { Entry } from './poll-queues.ts';

/**
 * The submissions that the upstream has returned and does not find any more. Such a response is a
 * failure of the upstream, unless the upstream has sent a good response since the first of them:
 * then only this submission is lost, and its responses have no meaning for the others. A submission
 * that the upstream returns again is no longer lost.
 */
class LostSubmissions {
  /** With the number of good responses before the first "not found". */
  readonly #missing = new Map<Entry, number>();
  readonly #lost = new Set<Entry>();

  get size(): number {
    return this.#lost.size;
  }

  /**
   * Records that the upstream did not find a submission. Returns whether it is lost.
   * `goodResponses`: of the upstream so far.
   */
  add(entry: Entry, goodResponses: number): boolean {
    const before = this.#missing.get(entry);
    if (before === undefined) this.#missing.set(entry, goodResponses);
    else if (before < goodResponses) this.#lost.add(entry);
    return this.#lost.has(entry);
  }

  remove(entry: Entry): void {
    this.#missing.delete(entry);
    this.#lost.delete(entry);
  }
}

const MAX_CANDIDATES = 100;

/**
 * The submissions to probe an upstream with during an outage. Every second probe polls one that the
 * upstream has returned lately, because an error for an unknown id may concern that id only. The
 * upstream may have lost those, so the other probes alternate between the newest submissions that
 * it has never returned and the submission that has been due longest. Each group is polled in turn,
 * so that one submission that the upstream returns is enough to end the outage.
 */
export class ProbeCandidates {
  // Arrays, because V8 keeps the old tables of a set that changes with each submission (row
  // `million`).
  /** The next one is the first. */
  readonly #returned: Entry[] = [];
  /** The next one is the last. */
  readonly #unreturned: Entry[] = [];
  readonly #lost = new LostSubmissions();
  #seen = 0;
  #probes = 0;

  /** Returns the submission for the next probe. `longestDue`: the one that has been due longest. */
  pick(mayPoll: (entry: Entry) => boolean, longestDue: Entry | undefined): Entry | undefined {
    if (this.#probes % 2 === 0) return this.#returned.find(mayPoll) ?? longestDue;
    if (this.#probes % 4 === 1) return this.#unreturned.findLast(mayPoll) ?? longestDue;
    return longestDue;
  }

  /** Records that a submission was polled as a probe. */
  probed(entry: Entry): void {
    this.#probes++;
    if (removeFrom(this.#returned, entry)) this.#returned.push(entry);
    if (removeFrom(this.#unreturned, entry)) this.#unreturned.unshift(entry);
  }

  /** Adds a newly scheduled submission, which the upstream may have returned before. */
  add(entry: Entry): void {
    if (entry.seen) this.#seen++;
    else addTo(this.#unreturned, entry);
  }

  /**
   * Returns what the earlier responses say about an observation: whether the upstream has returned
   * the submission before, and whether it has returned any. Lost submissions do not count.
   * `goodResponses`: of the upstream so far.
   */
  known(entry: Entry | undefined, observation: Observation, goodResponses: number) {
    const isMissing =
      entry?.seen === true && observation.kind === 'not_found' && observation.ambiguous;
    const isLost = isMissing && this.#lost.add(entry, goodResponses);
    return { seenBefore: entry?.seen === true && !isLost, seenAny: this.#seen > this.#lost.size };
  }

  /** Records that the upstream has returned the submission. */
  markSeen(entry: Entry): void {
    if (!entry.seen) this.#seen++;
    entry.seen = true;
    this.#lost.remove(entry);
    removeFrom(this.#unreturned, entry);
    removeFrom(this.#returned, entry);
    addTo(this.#returned, entry);
  }

  remove(entry: Entry): void {
    removeFrom(this.#returned, entry);
    removeFrom(this.#unreturned, entry);
    this.#lost.remove(entry);
    if (entry.seen) this.#seen--;
  }
}

/** Adds the newest candidate. */
function addTo(group: Entry[], entry: Entry): void {
  group.push(entry);
  if (group.length > MAX_CANDIDATES) group.shift();
}

/** Returns whether the entry was a candidate. */
function removeFrom(group: Entry[], entry: Entry): boolean {
  const index = group.indexOf(entry);
  if (index >= 0) group.splice(index, 1);
  return index >= 0;
}
