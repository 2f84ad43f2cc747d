import type { Actor } from '../lib/actor.ts';
import type { Clock } from '../lib/clock.ts';
import type { SubmissionWatcher, TrackEffect, TrackResult, UpdateResult } from './ports.ts';
import type { SubmissionSettings } from './settings.ts';
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
  config: SubmissionSettings;
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
    update(submissionId: string, body: UpdateBody, actor: Actor): UpdateRequestResult {
      const parsed = toOptionsPatch(body, { now: clock.now(), refusalOf });
      return parsed.kind === 'invalid' ? parsed : watcher.update(submissionId, parsed.patch, actor);
    },
  };
}

/** `reason`: what the tracked submission has instead. */
type Conflict = { kind: 'conflict'; submissionId: string; field: string; reason: string };

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
      const { kind, index, option, submission } = result;
      const { submissionId, upstream, dataHash } = submission;
      const [field, reason] =
        option === 'upstream'
          ? (['submission_id', `is already tracked at the upstream ${upstream}`] as const)
          : (['data_hash', `is already tracked with the data_hash ${dataHash}`] as const);
      return { kind, submissionId, field: fieldOf(index, field), reason };
    }
    case 'late': {
      const reason = 'the deadline is not in the future';
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
