import type { Config } from '../config/schema.ts';
import { StartError } from '../config/start-error.ts';
import type { Clock } from '../domain/clock.ts';
import { type TrackBody, toTrackRequests } from '../domain/track-request.ts';
import { LedgerError } from '../ledger/file/errors.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { checkSecret, createSecret } from '../notify/channels/signing.ts';
import type { UpstreamPool } from '../upstream/pool.ts';
import { UpstreamUsers } from '../upstream/users.ts';
import type { Watcher } from '../watch/watcher.ts';
import { isOwnToken } from './access/credentials.ts';
import type {
  Audit,
  DeliveryService,
  ErrorToProblem,
  Submissions,
  TrackRequestResult,
  Users,
  WebhookService,
} from './ports.ts';

/** Validates requests to track, passes them to the watcher, and reads from the ledger. */
export function submissionsOf(deps: {
  config: Config;
  ledger: Ledger;
  watcher: Watcher;
  clock: Clock;
  /** Returns why a callback URL is not allowed, or undefined. */
  refusalOf: (url: string) => string | undefined;
}): Submissions {
  const { config, ledger, watcher, clock, refusalOf } = deps;
  const defaults = {
    deadlineMs: config.submissions.deadline_s * 1_000,
    unknownGraceMs: config.submissions.unknown_grace_s * 1_000,
    stuckAfterMs: config.submissions.stuck_after_s * 1_000,
  };
  const hasUpstream = (name: string) => watcher.hasUpstream(name);
  const requestsOf = (body: TrackBody) => toTrackRequests(body, { now: clock.now(), defaults, hasUpstream, refusalOf });
  return {
    track(body) {
      const parsed = requestsOf(body);
      return parsed.kind === 'invalid' ? parsed : watcher.track(parsed.requests);
    },
    trackBatch(bodies) {
      const parsed = bodies.map(requestsOf);
      const valid = parsed.flatMap((one) => (one.kind === 'requests' ? [one.requests] : []));
      // Invalid requests are reported even if the ledger cannot be written.
      const results = (valid.length > 0 ? watcher.trackGroups(valid) : []).values();
      return parsed.map((one) => (one.kind === 'invalid' ? one : (results.next().value as TrackRequestResult)));
    },
    get: (id) => ledger.get(id),
    getWithHistory: (ids) => ledger.getWithHistory(ids),
    list: (query) => ledger.list(query),
    findByPrefix: (query) => ledger.findByPrefix(query),
    cancel: (ids) => watcher.cancel(ids),
    waitUntilFinal: (id, timeoutMs, signal) => watcher.waitUntilFinal(() => ledger.get(id), timeoutMs, signal),
    deadlineAt: (submission) => watcher.deadlineAt(submission),
  };
}

/** Looks up users at the upstream `default`; tokens of callers are forwarded to no other. */
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

/** Adds the time and the hashes of personal data to audit entries. */
export function auditOf({ audit }: Ledger, clock: Clock): Audit {
  const noEmail = { emailHash: null, emailMasked: null };
  return {
    add: ({ email, bearer, credentialId = null, ...entry }) =>
      audit.add({
        ...entry,
        credentialId,
        caller: bearer === undefined ? entry.caller : `${entry.caller}:${audit.shortHash(bearer)}`,
        ...(email === null ? noEmail : audit.emailFields(email)),
        at: clock.now(),
      }),
    list: (query) => audit.list(query),
  };
}

/** Maps ledger errors to HTTP problems; undefined for any other error. */
export const errorToProblem: ErrorToProblem = (error) => {
  if (!(error instanceof LedgerError)) return undefined;
  if (error.problem === 'full')
    return { status: 507, detail: 'the disk is full: nothing of the request was stored', retryAfterS: 30 };
  return { status: 503, detail: 'the ledger is unavailable: nothing of the request was stored', retryAfterS: 5 };
};

/** Deliveries of the ledger, at the current time. */
export function deliveriesOf({ deliveries }: Ledger, clock: Clock): DeliveryService {
  return {
    get: (id) => deliveries.get(id),
    list: (query) => deliveries.list(query),
    replay: (id) => deliveries.replay(id, clock.now()),
    replayDead: (destination, since) => deliveries.replayDead(destination, since, clock.now()),
  };
}

/** Webhooks of the ledger; creates and validates their secrets. */
export function webhooksOf(
  ledger: Ledger,
  clock: Clock,
  refusalOf: (url: string) => string | undefined,
): WebhookService {
  const { webhooks } = ledger;
  const now = () => clock.now();
  return {
    refusalOf,
    refusalOfSecret(secret, signature) {
      const isOther = signature === 'v1' ? secret.startsWith('whsk_') : secret.startsWith('whsec_');
      return isOther ? `this is not a secret for ${signature} signatures` : checkSecret(secret);
    },
    create(webhook, secret) {
      const created = createSecret(webhook.signature, secret);
      return { webhook: webhooks.create(webhook, created, now()), secret: created.secret };
    },
    get: (id) => webhooks.get(id, now()),
    list: (query) => webhooks.list({ ...query, now: now() }),
    update: (id, patch) => webhooks.update(id, patch, now()),
    rotate(id, { keepOldMs, secret }) {
      const known = webhooks.get(id, now());
      if (!known) return undefined;
      const created = createSecret(known.signature, secret);
      const webhook = webhooks.rotate(id, created, { oldUntil: now() + keepOldMs, now: now() });
      return webhook && { webhook, secret: created.secret };
    },
    delete: (id) => webhooks.delete(id, now()),
    test: (id) => ledger.test(id, now()),
  };
}
