import type { Config } from '../config/schema.ts';
import { StartError } from '../config/start-error.ts';
import type { Clock } from '../domain/clock.ts';
import { type TrackBody, toTrackRequests } from '../domain/track-request.ts';
import { isOwnToken } from '../http/access/credentials.ts';
import type { Audit, ErrorToProblem, Submissions, TrackRequestResult, Users } from '../http/ports.ts';
import { LedgerError } from '../ledger/file/errors.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { UpstreamPool } from '../upstream/pool.ts';
import { UpstreamUsers } from '../upstream/users.ts';
import type { Watcher } from '../watch/watcher.ts';

export function submissionsOf(deps: {
  config: Config;
  ledger: Ledger;
  monitor: Watcher;
  clock: Clock;
  /** Why nothing is ever sent to that address; undefined: it may be. */
  refusalOf: (url: string) => string | undefined;
}): Submissions {
  const { config, ledger, monitor, clock, refusalOf } = deps;
  const defaults = {
    deadlineMs: config.submissions.deadline_s * 1_000,
    unknownGraceMs: config.submissions.unknown_grace_s * 1_000,
    stuckAfterMs: config.submissions.stuck_after_s * 1_000,
  };
  const hasUpstream = (name: string) => monitor.hasUpstream(name);
  const requestsOf = (body: TrackBody) => toTrackRequests(body, { now: clock.now(), defaults, hasUpstream, refusalOf });
  return {
    track(body) {
      const parsed = requestsOf(body);
      return parsed.kind === 'invalid' ? parsed : monitor.track(parsed.requests);
    },
    trackBatch(bodies) {
      const parsed = bodies.map(requestsOf);
      const valid = parsed.flatMap((one) => (one.kind === 'requests' ? [one.requests] : []));
      // What is invalid is told so even where the ledger can't be written.
      const results = (valid.length > 0 ? monitor.trackGroups(valid) : []).values();
      return parsed.map((one) => (one.kind === 'invalid' ? one : (results.next().value as TrackRequestResult)));
    },
    get: (id) => ledger.get(id),
    getWithHistory: (ids) => ledger.getWithHistory(ids),
    list: (query) => ledger.list(query),
    findByPrefix: (query) => ledger.findByPrefix(query),
    cancel: (ids) => monitor.cancel(ids),
    waitUntilFinal: (id, timeoutMs, signal) => monitor.waitUntilFinal(() => ledger.get(id), timeoutMs, signal),
    deadlineAt: (submission) => monitor.deadlineAt(submission),
  };
}

/** Callers' own tokens go nowhere but to the upstream `default`. */
export function usersOf(config: Config, pool: UpstreamPool | undefined): Users {
  const { bearer, users } = config.upstreams.default;
  if (bearer !== undefined && isOwnToken(bearer))
    throw new StartError('DAWATCH_UPSTREAM_BEARER is a token of dawatch: set a token issued by the upstream');
  const failure = { kind: 'failure', reason: 'network', detail: 'no upstream is named default' } as const;
  const lookups = new UpstreamUsers({
    pool: pool ?? { get: async () => failure },
    bearer,
    getPath: users.get_path,
    listPath: users.list_path,
    parameters: users.parameters,
  });
  return {
    forwards: bearer === undefined,
    maxLimit: config.users.max_limit,
    getUser: (user, authorization) => lookups.getUser(user, authorization),
    listUsers: (limit, authorization) => lookups.listUsers(limit, authorization),
  };
}

export function auditOf({ audit }: Ledger, clock: Clock): Audit {
  const nobody = { emailHash: null, emailMasked: null };
  return {
    add: ({ email, bearer, credentialId = null, ...entry }) =>
      audit.add({
        ...entry,
        credentialId,
        caller: bearer === undefined ? entry.caller : `${entry.caller}:${audit.shortHash(bearer)}`,
        ...(email === null ? nobody : audit.emailFields(email)),
        at: clock.now(),
      }),
    list: (query) => audit.list(query),
  };
}

export const errorToProblem: ErrorToProblem = (error) => {
  if (!(error instanceof LedgerError)) return undefined;
  if (error.problem === 'full')
    return { status: 507, detail: 'no room left to keep this: nothing of the request was taken', retryAfterS: 30 };
  return { status: 503, detail: 'the ledger can not be used: nothing of the request was taken', retryAfterS: 5 };
};
