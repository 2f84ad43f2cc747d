import type { DueQueue } from './due-queue.ts';
import type { Entry } from './entry.ts';

const MOST = 100;

/** Which submissions the upstream has shown. The last of them are what an outage is probed with. */
export class ProbeCandidates {
  /** The newest at the end. */
  readonly #latest = new Set<Entry>();
  #seen = 0;

  /** Whether the upstream has shown any of those that are asked about. */
  get areAny(): boolean {
    return this.#seen > 0;
  }

  /** One of the last that is not in flight. */
  free(inFlight: DueQueue<Entry>): Entry | undefined {
    for (const entry of this.#latest) if (!inFlight.has(entry)) return entry;
    return undefined;
  }

  /** One that may have been shown before it came here. */
  enter(entry: Entry): void {
    if (entry.seen) this.#seen++;
  }

  show(entry: Entry): void {
    if (!entry.seen) this.#seen++;
    entry.seen = true;
    this.#latest.delete(entry);
    this.#latest.add(entry);
    if (this.#latest.size > MOST) for (const oldest of this.#latest) return void this.#latest.delete(oldest);
  }

  leave(entry: Entry): void {
    this.#latest.delete(entry);
    if (entry.seen) this.#seen--;
  }
}
