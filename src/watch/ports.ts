import type { Observation } from '../domain/classify.ts';
import type { UpstreamEventType } from '../domain/notifications/events.ts';
import type { Status, Submission, TrackRequest } from '../domain/submission.ts';
import type { TransitionContext, TransitionResult } from '../domain/transition.ts';
import type { BreakerState } from '../domain/upstream-health.ts';
import type { Watched } from '../pacing/entry.ts';
import type { PauseRecord } from './outage-clock.ts';

/** Submissions of one upstream to ask about, one request each. */
export type PollBatch = { upstream: string; submissionIds: readonly string[] };

/**
 * A pair of hands. A poll is an idempotent read: a batch may be lost or answered twice.
 * `report` is called once per submission, as its answer arrives. The promise resolves when the batch is through; it
 * never rejects, because a failure is an observation too.
 */
export type PollEngine = {
  poll(batch: PollBatch, report: (observation: Observation) => void): Promise<void>;
};

/** What one observation did, after it was committed. */
export type RecordedObservation = {
  observation: Observation;
  result: TransitionResult;
  previousStatus: Status;
  /** As it is now. */
  submission: Submission;
};

export type TrackResult =
  | { kind: 'tracked'; submissions: { submission: Submission; isNew: boolean }[] }
  /** The request at `index` names another upstream than the one this submission is tracked at. Nothing was kept. */
  | { kind: 'conflict'; index: number; submission: Submission }
  /** The request at `index` is of a new submission, and its deadline has passed. Nothing was kept. */
  | { kind: 'late'; index: number };

/** How an upstream was when the ledger last heard of it. */
export type UpstreamRecord = {
  state: BreakerState;
  /** When the outage began, if there is one. */
  outSince: number | null;
  /** The sum of its past outages and pauses. */
  outageMs: number;
  /** The pause that the upstream asked for last, while it is not in that sum. */
  pausedSince: number | null;
  pausedUntil: number | null;
  /** Until when a process may have been asking. */
  pollingUntil: number | null;
  /** What the pacer had learned about it, in the pacer's own words. */
  snapshot: string | null;
};

/** The ledger can't be written now, whatever is written: the disk is full, say. It is tried again. */
export class LedgerUnavailableError extends Error {}

/** The truth, as the monitor needs it. Every method is one transaction, committed when it returns. */
export type WatcherLedger = {
  /** All of them or none; a submission that is tracked already stays as it is. */
  track(requests: readonly TrackRequest[], now: number): TrackResult;
  /** Several of those in one transaction, each taken or refused for itself. */
  trackGroups(groups: readonly (readonly TrackRequest[])[], now: number): TrackResult[];
  /** In one transaction. Undefined: never tracked. A final submission stays as it is. */
  cancel(submissionIds: readonly string[], now: number): (Submission | undefined)[];
  /** Observations of submissions that are not tracked are passed over; one older than what is known changes nothing. */
  record(observations: readonly Observation[], context: TransitionContext): RecordedObservation[];
  /** What is to be asked about, in the order of tracking, `limit` at most behind the position `after`; 0: from the beginning. */
  listWatched(upstream: string, page: { after: number; limit: number }): { watched: Watched[]; next: number | null };
  upstream(name: string): UpstreamRecord;
  recordUpstream(change: UpstreamChange): void;
  /** Keeps what the outage clock shows during a pause, or after one. */
  recordPause(upstream: string, pause: PauseRecord): void;
  /** A submission that the upstream has shown; undefined: none is known. */
  findShownId(upstream: string): string | undefined;
  /** Keeps until when this process may be asking that upstream, and what its pacer has learned; null: nothing. */
  recordPolling(upstream: string, until: number, learned: string | null): void;
  /** Writes something that nobody reads: throws if the ledger can't be written. */
  probe(now: number): void;
};

export type UpstreamChange = {
  upstream: string;
  at: number;
  event: UpstreamEventType;
  record: Pick<UpstreamRecord, 'state' | 'outSince' | 'outageMs'>;
};
