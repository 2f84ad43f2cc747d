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

const NEVER_ASKED = -(2 ** 30);

/**
 * In exactly one of the two queues: waiting until `dueAt`, or in flight with its lease ending at `dueAt`. What is true of few is
 * kept beside: a million of them have no room for it.
 */
export class Entry implements Paced, Due, Candidate {
  readonly submissionId: string;
  readonly trackedAt: number;
  seen: boolean;
  dueAt: number;
  place = 0;
  before: Candidate | null = null;
  after: Candidate | null = null;
  order = 0;
  /** A small whole number is kept in its place; a time would be an object of its own. */
  #openAfterMs = NEVER_ASKED;

  constructor({ submissionId, trackedAt, seen }: Paced) {
    this.submissionId = submissionId;
    this.trackedAt = trackedAt;
    this.seen = seen;
    this.dueAt = trackedAt;
  }

  get openAt(): number {
    return this.#openAfterMs === NEVER_ASKED ? NEVER : this.trackedAt + this.#openAfterMs;
  }

  set openAt(at: number) {
    this.#openAfterMs = at === NEVER ? NEVER_ASKED : Math.floor(at - this.trackedAt);
  }
}
