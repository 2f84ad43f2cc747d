import { setImmediate } from 'node:timers/promises';
import { LedgerUnavailableError } from '../ledger/errors.ts';
import type { Actor } from '../lib/actor.ts';
import type { Clock } from '../lib/clock.ts';
import type { Config } from '../operations/config/schema.ts';
import type {
  SubmissionWatcher,
  TrackEffect,
  TrackedSubmission,
  TrackRefusal,
  TrackResult,
  UpdateResult,
} from './ports.ts';
import type { TrackRequest } from './submission.ts';
import {
  type TrackBody,
  type TrackContext,
  type TrackRequests,
  toOptionsPatch,
  toTrackRequests,
  type UpdateBody,
} from './track-request.ts';

export type Tracker = ReturnType<typeof trackerOf>;

/** Tracks single requests, which wait in no queue, and changes options. */
export function trackerOf(deps: {
  config: Config;
  watcher: SubmissionWatcher;
  clock: Clock;
  /** Returns why a callback URL is not allowed, or undefined. */
  refusalOf: (url: string) => string | undefined;
}) {
  const { config, watcher, clock, refusalOf } = deps;
  const context: Omit<TrackContext, 'now' | 'credential'> = {
    defaults: {
      deadlineMs: config.submissions.deadline_s * 1_000,
      unknownGraceMs: config.submissions.unknown_grace_s * 1_000,
      stuckAfterMs: config.submissions.stuck_after_s * 1_000,
    },
    hasUpstream: (name) => watcher.hasUpstream(name),
    refusalOf,
  };
  return {
    /** What the validation of a request depends on, besides the time and the credential. */
    context,
    /** `credential`: its number; null for a request that did not come over HTTP. */
    track(body: TrackBody, credential: number | null = null): TrackRequestResult {
      const now = clock.now();
      const parsed = toTrackRequests(body, { ...context, now, credential });
      return parsed.kind === 'invalid'
        ? parsed
        : trackResultOf(parsed, watcher.track(parsed.requests));
    },
    /**
     * Like `track`, for a request of any size that did not come over HTTP. Other work runs between
     * its commits.
     */
    async trackInParts(body: TrackBody): Promise<TrackRequestResult> {
      const parsed = toTrackRequests(body, { ...context, now: clock.now(), credential: null });
      if (parsed.kind === 'invalid') return parsed;
      const steps = trackInParts(watcher, parsed.requests);
      let step = steps.next();
      for (; !step.done; step = steps.next()) await setImmediate();
      return trackResultOf(parsed, step.value);
    },
    update(submissionId: string, body: UpdateBody, actor: Actor): UpdateRequestResult {
      const parsed = toOptionsPatch(body, { now: clock.now(), refusalOf });
      return parsed.kind === 'invalid' ? parsed : watcher.update(submissionId, parsed.patch, actor);
    },
  };
}

/** `reason`: what the tracked submission has instead. */
type Conflict = { kind: 'conflict'; submissionId: string; reason: string } & {
  field: string;
  stored?: number;
};

/** `field`: place of the cause in the body, as a JSON pointer without its first slash. */
export type TrackRequestResult =
  | Exclude<TrackResult, { kind: 'conflict' | 'late' }>
  | Conflict
  | { kind: 'invalid'; field: string; reason: string };

/** Returns the result for a client: a refusal names the place of its cause in the body. */
export function trackResultOf(
  { fieldOf }: Extract<TrackRequests, { kind: 'requests' }>,
  result: TrackResult,
): TrackRequestResult {
  switch (result.kind) {
    case 'tracked':
      return result;
    case 'conflict': {
      const { kind, index, option, submission, ...stored } = result;
      const { submissionId, upstream, dataHash } = submission;
      const [field, reason] =
        option === 'upstream'
          ? (['submission_id', `is already tracked at the upstream ${upstream}`] as const)
          : (['data_hash', `is already tracked with the data_hash ${dataHash}`] as const);
      return { kind, submissionId, field: fieldOf(index, field), reason, ...stored };
    }
    case 'late': {
      const { stored } = result;
      const reason = `the deadline is not in the future${stored ? `; ${acceptedText(stored)}` : ''}`;
      return { kind: 'invalid', field: fieldOf(result.index, 'deadline'), reason };
    }
    default:
      return result satisfies never;
  }
}

/** Undefined: the id was never tracked. */
export type UpdateRequestResult =
  | UpdateResult
  | { kind: 'invalid'; field: string; reason: string }
  | undefined;

/**
 * Largest number of ids in one commit. Each takes 20 to 50 microseconds, in which nothing else
 * runs.
 */
export const MAX_COMMIT_IDS = 1_000;

/**
 * Tracks a request in steps, between which other work can run. Yields the number of ids that a step
 * has committed.
 */
export type TrackingSteps = Generator<number, TrackResult>;

type PartsWatcher = {
  track(requests: readonly TrackRequest[]): TrackResult;
  refusalOf(requests: readonly TrackRequest[]): TrackRefusal | undefined;
};

/**
 * Tracks a request of any size, of which each commit has at most MAX_COMMIT_IDS. A large one is
 * checked as a whole before, so that a refused one stores nothing, unless another request for the
 * same ids was committed in between; then, and if the ledger cannot be written, `stored` counts the
 * submissions of earlier commits. Repeating the request is safe.
 */
export function* trackInParts(
  watcher: PartsWatcher,
  requests: readonly TrackRequest[],
): TrackingSteps {
  if (requests.length <= MAX_COMMIT_IDS) return watcher.track(requests);
  const refusal = watcher.refusalOf(requests);
  if (refusal) return refusal;
  yield 0;
  const submissions: TrackedSubmission[] = [];
  while (submissions.length < requests.length) {
    const stored = submissions.length;
    const part = requests.slice(stored, stored + MAX_COMMIT_IDS);
    const result = counting(stored, () => watcher.track(part));
    if (result.kind !== 'tracked')
      return { ...result, stored, ...('index' in result && { index: stored + result.index }) };
    submissions.push(...result.submissions);
    if (submissions.length < requests.length) yield part.length;
  }
  return { kind: 'tracked', submissions };
}

/**
 * Adds the number of submissions of earlier commits to the error of a ledger that cannot be
 * written.
 */
function counting<T>(stored: number, commit: () => T): T {
  try {
    return commit();
  } catch (error) {
    if (error instanceof LedgerUnavailableError) error.stored = stored;
    throw error;
  }
}

/** Returns the number of submissions by effect. */
export function countEffects(
  submissions: readonly { effect: TrackEffect }[],
): Record<TrackEffect, number> {
  const counts: Record<TrackEffect, number> = {
    accepted: 0,
    already_tracked: 0,
    already_final: 0,
    retracked: 0,
  };
  for (const { effect } of submissions) counts[effect] += 1;
  return counts;
}

/** Says how much of a refused request was accepted. `stored`: see TrackRefusal. */
export function acceptedText(stored = 0): string {
  return stored === 0 ? 'nothing was accepted' : `the first ${stored} submissions were accepted`;
}
