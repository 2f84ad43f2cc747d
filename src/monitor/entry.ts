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
  readonly trackedAt: number;
  seen: boolean;
  dueAt: number;
  place = 0;
  before: Candidate | null = null;
  after: Candidate | null = null;
  order = 0;
  openAt = NEVER;

  constructor({ submissionId, trackedAt, seen }: Paced) {
    this.submissionId = submissionId;
    this.trackedAt = trackedAt;
    this.seen = seen;
    this.dueAt = trackedAt;
  }
}
