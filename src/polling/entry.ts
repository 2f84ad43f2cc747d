import type { Due } from '../lib/due-queue.ts';
import { type Candidate, NEVER } from '../pacing/index.ts';

/** A submission to schedule. `trackedAt`: epoch ms. `seen`: the upstream has returned it before. */
export type Paced = { submissionId: string; trackedAt: number; seen: boolean };

/**
 * A scheduled submission. It waits until `dueAt`, or is in flight with a lease that expires at
 * `dueAt`. Properties of few entries are stored elsewhere, because there can be a million entries.
 */
export class Entry implements Paced, Due, Candidate {
  readonly submissionId: string;
  seen: boolean;
  heapIndex = 0;
  order = 0;
  readonly #times: Float64Array;
  readonly #at: number;

  constructor({ submissionId, trackedAt, seen }: Paced) {
    this.submissionId = submissionId;
    this.seen = seen;
    this.#at = allocateTimes();
    this.#times = times;
    this.dueAt = trackedAt;
    this.restart(trackedAt);
  }

  /**
   * Resets the entry for a submission that is tracked again. An entry in flight keeps its lease.
   */
  restart(trackedAt: number): void {
    this.#times[this.#at + TRACKED] = trackedAt;
    this.openAt = NEVER;
  }

  get trackedAt(): number {
    return this.#times[this.#at + TRACKED] as number;
  }

  get dueAt(): number {
    return this.#times[this.#at + DUE] as number;
  }

  set dueAt(dueAt: number) {
    this.#times[this.#at + DUE] = dueAt;
  }

  get openAt(): number {
    return this.#times[this.#at + OPEN] as number;
  }

  set openAt(openAt: number) {
    this.#times[this.#at + OPEN] = openAt;
  }
}

const TRACKED = 0;
const DUE = 1;
const OPEN = 2;
const COLUMNS = 3;
/** Few, because one remaining entry keeps its whole block of 6 KiB in memory. */
const ENTRIES_PER_BLOCK = 256;

/**
 * The times of the newest block of entries. A time takes 8 bytes here instead of 24 as a property,
 * which saves a tenth of the row "memory of the process with 1,000,000 tracked" in
 * docs/performance.md. A block is freed with the last of its entries.
 */
let times = new Float64Array(0);
let taken = 0;

function allocateTimes(): number {
  if (taken === times.length) {
    times = new Float64Array(COLUMNS * ENTRIES_PER_BLOCK);
    taken = 0;
  }
  taken += COLUMNS;
  return taken - COLUMNS;
}
