import type { Observation } from './classify.ts';
import type { ChainResult, FinalitySource, Status, Submission, TrackOption } from './submission.ts';
import type { TransitionResult } from './transition.ts';

/** `observation` null: after a verdict of the chain. `detection`: if it has become final. */
export type RecordedChange = {
  at: number;
  observation: Observation | null;
  result: TransitionResult;
  previousStatus: Status;
  submission: Submission;
  detection: Detection | null;
};

/**
 * What the chain says about a stored submission; null: it is not verified. `isHeld`: a required
 * confirmation is missing. `detection`: if it becomes final.
 */
export type Verdict = {
  stored: Pick<Submission, 'submissionId' | 'version'>;
  chain: ChainResult | null;
  isHeld: boolean;
  detection: Detection | null;
};

/** The names are those of the counts in the response. */
export type TrackEffect = 'accepted' | 'already_tracked' | 'already_final' | 'retracked';
/** `kept`: the options of the request that a known submission does not take. */
export type TrackedSubmission = {
  submission: Submission;
  effect: TrackEffect;
  kept?: TrackOption[];
};

export type TrackResult = { kind: 'tracked'; submissions: TrackedSubmission[] } | TrackRefusal;

export type TrackRefusal =
  /** The request at `index` names another upstream, or other data, than the tracked submission. */
  | { kind: 'conflict'; index: number; option: 'upstream' | 'data_hash'; submission: Submission }
  /** The deadline of the request at `index` is not after the beginning of tracking. */
  | { kind: 'late'; index: number };

export type UpdateResult =
  /** `changed`: the options that were different before. */
  | { kind: 'updated'; submission: Submission; changed: TrackOption[] }
  /** The submission has ended, so that its time limits cannot change. */
  | { kind: 'final'; submission: Submission }
  | { kind: 'long_history'; submission: Submission }
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
  /** Its next poll is the last one, at its deadline. */
  isHeld?: boolean;
};

/** `lagMs`: since finality, as far as dawatch could poll. Times are epoch milliseconds. */
export type Detection = { finalityAt: number; source: FinalitySource; lagMs: number };
/** Of observations that may have found their submission final. null: not enough was known. */
export type Detections = ReadonlyMap<Observation, Detection | null>;
