import type { Observation } from '../submissions/classify.ts';
import type { Entry } from './poll-queues.ts';

/**
 * The control while the upstream has returned nothing else: no upstream gives this id out. A
 * response that it does not exist shows that the upstream works.
 */
export const MADE_UP_ID = '00000000-0000-0000-0000-000000000000';

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

  /** Whether a submission is missing that is not lost. */
  get areMissing(): boolean {
    return this.#missing.size > this.#lost.size;
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

/** A submission to test the upstream with. `isControl`: a failure is one of the upstream. */
export type Test = { submissionId: string; isControl: boolean };

/**
 * The submissions to test an upstream with.
 *
 * A failed request is evidence about its submission, not about the upstream. A control decides: a
 * submission that did not fail, and that the upstream has returned before, tracked or not; the
 * made-up id if there is none.
 *
 * During an outage, every second probe is a control. The upstream may have lost those, so the other
 * probes alternate between the newest submissions that it has never returned and the submission
 * that has been due longest. Each group is polled in turn, so that one submission that the upstream
 * returns is enough to end the outage.
 */
export class ProbeCandidates {
  // Arrays, because V8 keeps the old tables of a set that changes with each submission (row
  // `million`).
  /** Ids of submissions, tracked or not. The next probe is the first, the newest the last. */
  readonly #returned: string[] = [];
  /** The next one is the last. */
  readonly #unreturned: Entry[] = [];
  readonly #lost = new LostSubmissions();
  #seen = 0;
  #probes = 0;

  /** Returns the newest control. `failed`: the submissions whose requests have failed. */
  control(failed: ReadonlySet<string>, mayPoll: (submissionId: string) => boolean): Test {
    const returned = this.#returned.findLast((id) => !failed.has(id) && mayPoll(id));
    return { submissionId: returned ?? MADE_UP_ID, isControl: true };
  }

  /**
   * Returns the submission for the next probe. `longestDue`: the one that has been due longest.
   * `failed`: those whose requests failed before the outage.
   */
  pick(
    failed: ReadonlySet<string>,
    mayPoll: (submissionId: string) => boolean,
    longestDue: Entry | undefined,
  ): Test {
    const turn = this.#probes % 4;
    if (turn % 2 === 0) {
      const others = this.#returned.find((id) => !failed.has(id) && mayPoll(id));
      if (others !== undefined) return { submissionId: others, isControl: true };
      // All may have failed because of the outage.
      const any = turn === 0 ? undefined : this.#returned.find(mayPoll);
      return { submissionId: any ?? MADE_UP_ID, isControl: any === undefined };
    }
    const unreturned =
      turn === 1
        ? this.#unreturned.findLast(({ submissionId }) => mayPoll(submissionId))
        : undefined;
    const { submissionId } = unreturned ?? longestDue ?? { submissionId: undefined };
    if (submissionId !== undefined) return { submissionId, isControl: false };
    return { submissionId: this.#returned.find(mayPoll) ?? MADE_UP_ID, isControl: true };
  }

  /** Records that a submission was polled to test the upstream. */
  tested(entry: Entry): void {
    this.#probes++;
    const { submissionId } = entry;
    if (removeFrom(this.#returned, submissionId)) this.#returned.push(submissionId);
    if (removeFrom(this.#unreturned, entry)) this.#unreturned.unshift(entry);
  }

  /** Adds a newly scheduled submission, which the upstream may have returned before. */
  add(entry: Entry): void {
    if (!entry.seen) addTo(this.#unreturned, entry);
    else {
      this.#seen++;
      this.addReturned(entry.submissionId);
    }
  }

  /** Adds a submission that the upstream has returned before, tracked or not. */
  addReturned(submissionId: string): void {
    removeFrom(this.#returned, submissionId);
    addTo(this.#returned, submissionId);
  }

  hasReturned(submissionId: string): boolean {
    return this.#returned.includes(submissionId);
  }

  /**
   * Returns what the earlier responses say about an observation: whether the upstream has returned
   * the submission before, and whether it has returned any. Lost submissions do not count.
   * `goodResponses`: of the upstream so far.
   */
  known(entry: Entry | undefined, observation: Observation, goodResponses: number) {
    // A failing database sends the same response for the made-up id as for those that it has.
    if (observation.submissionId === MADE_UP_ID && entry?.seen !== true)
      return { seenBefore: this.#lost.areMissing, seenAny: false };
    const isMissing =
      entry?.seen === true && observation.kind === 'not_found' && observation.ambiguous;
    const isLost = isMissing && this.#lost.add(entry, goodResponses);
    if (isLost) removeFrom(this.#returned, entry.submissionId);
    const seenAny = this.#returned.length > 0 || this.#seen > this.#lost.size;
    return { seenBefore: entry?.seen === true && !isLost, seenAny };
  }

  /** Records that the upstream has returned the submission. */
  markSeen(entry: Entry): void {
    if (!entry.seen) this.#seen++;
    entry.seen = true;
    this.#lost.remove(entry);
    removeFrom(this.#unreturned, entry);
    this.addReturned(entry.submissionId);
  }

  remove(entry: Entry): void {
    removeFrom(this.#unreturned, entry);
    this.#lost.remove(entry);
    if (entry.seen) this.#seen--;
  }
}

/** Adds the newest candidate. */
function addTo<T>(group: T[], candidate: T): void {
  group.push(candidate);
  if (group.length > MAX_CANDIDATES) group.shift();
}

/** Returns whether it was a candidate. */
function removeFrom<T>(group: T[], candidate: T): boolean {
  const index = group.lastIndexOf(candidate);
  if (index >= 0) group.splice(index, 1);
  return index >= 0;
}
