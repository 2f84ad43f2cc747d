import type { Actor } from '../lib/actor.ts';
import type { Observation } from './classify.ts';
import type { OptionsPatch } from './option-changes.ts';
import type { RecentPoll } from './recent-poll.ts';
import type {
  FinalitySource,
  Status,
  Submission,
  TrackOption,
  TrackRequest,
} from './submission.ts';
import type { TransitionContext, TransitionResult } from './transition.ts';
import type { UpstreamChange, UpstreamRecord } from './upstream.ts';

/** Submissions of one upstream to poll, one request each. */
export type PollBatch = { upstream: string; submissionIds: readonly string[] };

/**
 * Sends polls. A poll is an idempotent read, so a batch may be lost, and an id may be reported
 * twice. `report` is called once per submission, as soon as its result is known. The promise
 * resolves when the batch has ended; it never rejects, because a failed request is an observation
 * too.
 */
export type PollEngine = {
  poll(batch: PollBatch, report: (observation: Observation) => void): Promise<void>;
};

/** The committed effect of one observation. */
export type RecordedObservation = {
  observation: Observation;
  result: TransitionResult;
  previousStatus: Status;
  /** After the observation. */
  submission: Submission;
};

/**
 * The effect of a tracking request on a submission; the names are those of the counts in its
 * response.
 */
export type TrackEffect = 'accepted' | 'already_tracked' | 'already_final' | 'retracked';
export type TrackedSubmission = { submission: Submission; effect: TrackEffect };

export type TrackResult = { kind: 'tracked'; submissions: TrackedSubmission[] } | TrackRefusal;

export type TrackRefusal =
  /** The request at `index` names another upstream, or other data, than the tracked submission. */
  | { kind: 'conflict'; index: number; option: 'upstream' | 'data_hash'; submission: Submission }
  /**
   * The request at `index` would track a submission whose deadline is not after the beginning of
   * tracking.
   */
  | { kind: 'late'; index: number };

export type UpdateResult =
  /** `changed`: the options that were different before. */
  | { kind: 'updated'; submission: Submission; changed: TrackOption[] }
  /** The submission has ended, so that its time limits cannot change. */
  | { kind: 'final'; submission: Submission }
  /** Its history has MAX_HISTORY entries. */
  | { kind: 'long_history'; submission: Submission }
  /** The new deadline has passed. */
  | { kind: 'late' };

/** A submission whose deadline has passed. `at`: when it ended, epoch milliseconds. */
export type EndedSubmission = { submission: Submission; previousStatus: Status; at: number };

/** The deadline of an open submission, epoch milliseconds. `id`: its row. */
export type Deadline = { submissionId: string; at: number; id: number };

/** A stored submission that is scheduled again after a restart. Times are epoch milliseconds. */
export type Watched = {
  submissionId: string;
  trackedAt: number;
  seen: boolean;
  polledAt: number | null;
  finalizedAt: number | null;
};

/**
 * When a submission that a poll found final became final, epoch milliseconds, and the detection
 * lag: the time since then, in which dawatch could poll it.
 */
export type Detection = { finalityAt: number; source: FinalitySource; lagMs: number };

/**
 * The ledger as the watcher needs it. Every method is one transaction, committed when it returns.
 */
export type WatcherLedger = {
  /**
   * Tracks groups of submissions, each accepted or refused independently as a whole. Submissions
   * that are tracked already are unchanged, unless they have ended and the request tracks them
   * again, or are open and get their first hash.
   */
  trackGroups(groups: readonly (readonly TrackRequest[])[], now: number): TrackResult[];
  /**
   * Returns why the requests of a group would be refused; undefined if they would be accepted.
   * Stores nothing.
   */
  refusalOf(requests: readonly TrackRequest[], now: number): TrackRefusal | undefined;
  /**
   * Undefined in the result: the id was never tracked. Final submissions are unchanged. With an
   * actor, each cancellation is audited.
   */
  cancel(submissionIds: readonly string[], now: number, actor?: Actor): (Submission | undefined)[];
  /**
   * Undefined: the id was never tracked. Nothing changes unless the result is `updated`. With an
   * actor, a change is audited.
   */
  update(
    submissionId: string,
    patch: OptionsPatch,
    now: number,
    actor?: Actor,
  ): UpdateResult | undefined;
  /**
   * Ignores submissions that are not tracked. An observation that is older than the recorded one
   * changes nothing. `detections`: of observations that found a submission final; without one,
   * its time of finality is not known.
   */
  record(
    observations: readonly Observation[],
    context: TransitionContext,
    detections?: ReadonlyMap<Observation, { detection: Detection | null }>,
  ): RecordedObservation[];
  /**
   * Lists the submissions to poll in the order of tracking, at most `limit` after the position
   * `after` (0: from the beginning). `next`: the position for the next page; null: this is the last
   * one.
   */
  listWatched(
    upstream: string,
    page: { after: number; limit: number },
  ): { watched: Watched[]; next: number | null };
  /**
   * Lists open submissions by their deadlines, which are after the position `after` and at most
   * `until`.
   */
  listDeadlines(
    upstream: string,
    page: { after: Omit<Deadline, 'submissionId'>; until: number; limit: number },
  ): Deadline[];
  /** Ends open submissions whose deadlines have passed without an answer, for this reason. */
  expire(
    submissionIds: readonly string[],
    now: number,
    reasonOf: (submissionId: string) => string,
  ): EndedSubmission[];
  upstream(name: string): UpstreamRecord;
  recordUpstream(change: UpstreamChange): void;
  recordPause(upstream: string, until: number): void;
  /** Returns a submission that the upstream has returned before, if one is known. */
  findShownId(upstream: string): string | undefined;
  /**
   * `until`: until when this process may be polling. `snapshot`: what the scheduler has learned;
   * null leaves it unchanged.
   */
  recordPolling(upstream: string, until: number, snapshot: string | null): void;
  /** Writes an unused value. Throws if the ledger cannot be written. */
  probe(now: number): void;
};

/** The watcher as the routes of submissions need it. */
export type SubmissionWatcher = {
  /**
   * Commits the requests, all or none, then starts to poll. Throws if the ledger cannot be written.
   */
  track(requests: readonly TrackRequest[]): TrackResult;
  /**
   * Like `track` for several groups in one commit; each group is accepted or refused independently.
   */
  trackGroups(groups: readonly (readonly TrackRequest[])[]): TrackResult[];
  /** Returns why `track` would refuse these requests; undefined if it would accept them. */
  refusalOf(requests: readonly TrackRequest[]): TrackRefusal | undefined;
  /** Undefined in the result: the id was never tracked. */
  cancel(submissionIds: readonly string[], actor?: Actor): (Submission | undefined)[];
  update(submissionId: string, patch: OptionsPatch, actor?: Actor): UpdateResult | undefined;
  /** The newest polls of the submission since the start of the server, oldest first. */
  recentPolls(submission: Submission): RecentPoll[];
  /** When the submission is polled next, at the earliest, epoch ms; null: it is not polled. */
  nextPollAt(submission: Submission): number | null;
  /**
   * Resolves when the submission is final, the time is over, the server stops, or `signal` aborts.
   */
  waitUntilFinal(
    current: () => Submission | undefined,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<void>;
  hasUpstream(name: string): boolean;
};
