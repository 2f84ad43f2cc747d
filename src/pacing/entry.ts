import type { Due } from './due-queue.ts';
import { type Candidate, NEVER } from './policy.ts';

/** A submission the pacer is to ask about. `seen`: the upstream has shown it before. */
export type Paced = { submissionId: string; trackedAt: number; seen: boolean };

/** A submission to go on with after a restart, as the ledger knows it. */
export type Watched = {
  submissionId: string;
  trackedAt: number;
  seen: boolean;
  polledAt: number | null;
  finalizedAt: number | null;
};

/**
 * In exactly one of the two queues: waiting until `dueAt`, or in flight with its lease ending at `dueAt`. What is true of few is
 * kept beside: a million of them have no room for it.
 */
export class Entry implements Paced, Due, Candidate {
  readonly submissionId: string;
  seen: boolean;
  place = 0;
  order = 0;
  readonly #times: Float64Array;
  readonly #at: number;

  constructor({ submissionId, trackedAt, seen }: Paced) {
    this.submissionId = submissionId;
    this.seen = seen;
    this.#at = placeForTimes();
    this.#times = times;
    this.#times[this.#at + TRACKED] = trackedAt;
    this.dueAt = trackedAt;
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
/** Few enough that a straggler keeps little alive besides its own. */
const ENTRIES_PER_BLOCK = 64;

/**
 * The times of the newest entries stand together: as a property of its own each would take 24 bytes instead of 8. A block
 * goes with the last of its entries.
 */
let times = new Float64Array(0);
let taken = 0;

function placeForTimes(): number {
  if (taken === times.length) {
    times = new Float64Array(COLUMNS * ENTRIES_PER_BLOCK);
    taken = 0;
  }
  taken += COLUMNS;
  return taken - COLUMNS;
}
