import { setImmediate } from 'node:timers/promises';
import type { Actor } from '../lib/actor.ts';
import type { Clock } from '../lib/clock.ts';
import type { Config } from '../operations/config/schema.ts';
import type { SubmissionWatcher } from './ports.ts';
import { trackInParts } from './track-in-parts.ts';
import { type TrackBody, type TrackContext, toTrackRequests } from './track-request.ts';
import {
  type TrackRequestResult,
  trackResultOf,
  type UpdateRequestResult,
} from './track-result.ts';
import { toOptionsPatch, type UpdateBody } from './update-request.ts';

export type Tracker = ReturnType<typeof trackerOf>;

/** Tracks single requests, which wait in no queue, and changes options. */
export function trackerOf(deps: {
  config: Config;
  watcher: SubmissionWatcher;
  clock: Clock;
  /** Returns why a callback URL is not allowed, or undefined. */
  refusalOf: (url: string) => string | undefined;
  isTraced: boolean;
}) {
  const { config, watcher, clock, refusalOf, isTraced } = deps;
  const context: Omit<TrackContext, 'now' | 'credential'> = {
    defaults: {
      deadlineMs: config.submissions.deadline_s * 1_000,
      unknownGraceMs: config.submissions.unknown_grace_s * 1_000,
      stuckAfterMs: config.submissions.stuck_after_s * 1_000,
    },
    hasUpstream: (name) => watcher.hasUpstream(name),
    refusalOf,
    isTraced,
  };
  return {
    /** What the validation of a request depends on, besides the time and the credential. */
    context,
    /**
     * `credential`: the number of the credential; null for a request that did not come over HTTP.
     */
    track(body: TrackBody, credential: number | null = null): TrackRequestResult {
      const parsed = toTrackRequests(body, { ...context, now: clock.now(), credential });
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
