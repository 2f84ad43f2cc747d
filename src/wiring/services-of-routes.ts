import { setImmediate } from 'node:timers/promises';
import type { Actor } from '../access/audit-actions.ts';
import { isOwnToken } from '../access/credentials.ts';
import { UpstreamUsers } from '../access/users.ts';
import {
  type ChannelDescription,
  type TrackRequestResult,
  trackResultOf,
  type UpdateRequestResult,
} from '../http/ports.ts';
import type { Clock } from '../lib/clock.ts';
import type { EventFeed } from '../notifications/event-feed.ts';
import type { Config } from '../operations/config/schema.ts';
import { StartError } from '../operations/config/start-error.ts';
import type { RollingHour } from '../operations/metrics/rolling-hour.ts';
import type { CachedLookup } from '../polling/cached-lookup.ts';
import type { UpstreamClient } from '../polling/upstream-client.ts';
import type { Watcher } from '../polling/watcher.ts';
import { trackInParts } from '../submissions/track-in-parts.ts';
import { type TrackBody, type TrackContext, toTrackRequests } from '../submissions/track-request.ts';
import { toOptionsPatch, type UpdateBody } from '../submissions/update-request.ts';
import type { Ledger } from './ledger-stores.ts';

/** The services of the routes. */
export type Services = {
  ledger: Ledger;
  watcher: Watcher;
  tracker: Tracker;
  lookup: CachedLookup;
  feed: EventFeed;
  hour: RollingHour;
  /** Returns why a webhook URL is not allowed; undefined if it is. */
  refusalOf: (url: string) => string | undefined;
  /** The setting `server.public_url`. */
  publicUrl: () => string | undefined;
  channels: () => readonly ChannelDescription[];
};

export type Tracker = ReturnType<typeof trackerOf>;

/** Tracks single requests, which wait in no queue, and changes options. */
export function trackerOf(deps: {
  config: Config;
  watcher: Watcher;
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
    /** `credential`: the number of the credential; null for a request that did not come over HTTP. */
    track(body: TrackBody, credential: number | null = null): TrackRequestResult {
      const parsed = toTrackRequests(body, { ...context, now: clock.now(), credential });
      return parsed.kind === 'invalid' ? parsed : trackResultOf(parsed, watcher.track(parsed.requests));
    },
    /** Like `track`, for a request of any size that did not come over HTTP. Other work runs between its commits. */
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

export type Users = Omit<ReturnType<typeof usersOf>, 'useBearer'>;

/** Looks up users at the upstream `default`; tokens of callers are forwarded to no other. */
export function usersOf(config: Config, client: UpstreamClient | undefined) {
  const { bearer, users } = config.upstreams.default;
  refuseOwnBearer(config);
  const failure = { kind: 'failure', reason: 'network', detail: 'no upstream is named default' } as const;
  const lookups = new UpstreamUsers({
    client: client ?? { get: async () => failure },
    bearer,
    getPath: users.get_path,
    listPath: users.list_path,
    parameters: users.parameters,
  });
  return {
    lookups: lookups as Pick<UpstreamUsers, 'getUser' | 'listUsers'>,
    useBearer: (next: string | undefined) => lookups.useBearer(next),
    /** Whether callers send the upstream's own token instead of one of dawatch. */
    forwards: bearer === undefined,
    maxLimit: config.users.max_limit,
  };
}

/** Throws a StartError if the bearer for user lookups is a token of dawatch. */
export function refuseOwnBearer({ upstreams }: Config): void {
  const { bearer } = upstreams.default;
  if (bearer !== undefined && isOwnToken(bearer))
    throw new StartError('DAWATCH_UPSTREAM_BEARER is a token of dawatch: set a token issued by the upstream');
}
