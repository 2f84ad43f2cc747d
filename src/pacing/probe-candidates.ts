import type { Entry } from './entry.ts';

const MAX_CANDIDATES = 100;

/** The submissions that the upstream has returned. The latest of them are used as probes during an outage. */
export class ProbeCandidates {
  /** The newest is the last. */
  readonly #latest = new Set<Entry>();
  #seen = 0;

  /** Whether the upstream has returned any of the scheduled submissions. */
  get hasAny(): boolean {
    return this.#seen > 0;
  }

  /** Returns one of the latest submissions that may be polled. */
  pick(mayPoll: (entry: Entry) => boolean): Entry | undefined {
    for (const entry of this.#latest) if (mayPoll(entry)) return entry;
    return undefined;
  }

  /** Adds a newly scheduled submission, which the upstream may have returned before. */
  add(entry: Entry): void {
    if (entry.seen) this.#seen++;
  }

  /** Records that the upstream has returned the submission. */
  markSeen(entry: Entry): void {
    if (!entry.seen) this.#seen++;
    entry.seen = true;
    this.#latest.delete(entry);
    this.#latest.add(entry);
    if (this.#latest.size > MAX_CANDIDATES) for (const oldest of this.#latest) return void this.#latest.delete(oldest);
  }

  remove(entry: Entry): void {
    this.#latest.delete(entry);
    if (entry.seen) this.#seen--;
  }
}
