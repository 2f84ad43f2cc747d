import type { Config } from '../config/schema.ts';
import { StartError } from '../config/start-error.ts';
import type { Clock } from '../domain/clock.ts';
import type { NewWebhook, Signature, Webhook, WebhookPatch } from '../domain/notifications/webhook.ts';
import { type TrackBody, toTrackRequests } from '../domain/track-request.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { checkSecret, createSecret } from '../notify/channels/signing.ts';
import type { UpstreamPool } from '../upstream/pool.ts';
import { UpstreamUsers } from '../upstream/users.ts';
import type { Watcher } from '../watch/watcher.ts';
import { isOwnToken } from './access/credentials.ts';
import type { RollingHour } from './metrics/rolling-hour.ts';
import type { LookupAudit, Readiness, TrackRequestResult } from './ports.ts';

export type Tracker = ReturnType<typeof trackerOf>;

/** Validates requests to track and passes them to the watcher. */
export function trackerOf(deps: {
  config: Config;
  watcher: Watcher;
  clock: Clock;
  /** Returns why a callback URL is not allowed, or undefined. */
  refusalOf: (url: string) => string | undefined;
}) {
  const { config, watcher, clock, refusalOf } = deps;
  const defaults = {
    deadlineMs: config.submissions.deadline_s * 1_000,
    unknownGraceMs: config.submissions.unknown_grace_s * 1_000,
    stuckAfterMs: config.submissions.stuck_after_s * 1_000,
  };
  const hasUpstream = (name: string) => watcher.hasUpstream(name);
  const requestsOf = (body: TrackBody) => toTrackRequests(body, { now: clock.now(), defaults, hasUpstream, refusalOf });
  return {
    track(body: TrackBody): TrackRequestResult {
      const parsed = requestsOf(body);
      return parsed.kind === 'invalid' ? parsed : watcher.track(parsed.requests);
    },
    /** Tracks each body for itself, all in one commit. */
    trackBatch(bodies: readonly TrackBody[]): TrackRequestResult[] {
      const parsed = bodies.map(requestsOf);
      const valid = parsed.flatMap((one) => (one.kind === 'requests' ? [one.requests] : []));
      // Invalid requests are reported even if the ledger cannot be written.
      const results = (valid.length > 0 ? watcher.trackGroups(valid) : []).values();
      return parsed.map((one) => (one.kind === 'invalid' ? one : (results.next().value as TrackRequestResult)));
    },
  };
}

export type Users = ReturnType<typeof usersOf>;

/** Looks up users at the upstream `default`; tokens of callers are forwarded to no other. */
export function usersOf(config: Config, pool: UpstreamPool | undefined) {
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
    lookups: lookups as Pick<UpstreamUsers, 'getUser' | 'listUsers'>,
    /** Whether callers send the upstream's own token instead of one of dawatch. */
    forwards: bearer === undefined,
    maxLimit: config.users.max_limit,
  };
}

const OLDEST_OPEN = 10;

export type Overview = ReturnType<typeof overviewOf>;

/** Returns the current state and the last hour, in constant time regardless of the number of submissions. */
export function overviewOf(deps: {
  ledger: Ledger;
  watcher: Watcher;
  hour: RollingHour;
  clock: Clock;
  health: () => Readiness;
}) {
  const { ledger, watcher, hour, clock, health } = deps;
  const now = clock.now();
  return {
    submissions: ledger.stats.submissionsByStatus(),
    minutes: hour.minutes(now),
    hour: hour.hour(now),
    upstreams: watcher.pacing(),
    oldestOpen: ledger.stats.oldestOpen(OLDEST_OPEN),
    deliveries: ledger.stats.deliveries(),
    /** null without Redis. */
    workers: health().redis?.workers.length ?? null,
  };
}

export type Audit = ReturnType<typeof auditOf>;

/** Adds the time and the hashes of personal data to audit entries. */
export function auditOf({ audit }: Ledger, clock: Clock) {
  const noEmail = { emailHash: null, emailMasked: null };
  return {
    /**
     * Stores an entry durably; throws if it cannot be written. Neither the e-mail address nor `bearer`, the token of a
     * forwarded caller, is stored in plain text.
     */
    add({ email, bearer, ...entry }: LookupAudit & { email: string | null; bearer?: string | undefined }): void {
      audit.add({
        ...entry,
        caller: bearer === undefined ? entry.caller : `${entry.caller}:${audit.shortHash(bearer)}`,
        ...(email === null ? noEmail : audit.emailFields(email)),
        at: clock.now(),
      });
    },
  };
}

export type WebhookService = ReturnType<typeof webhooksOf>;

/** Webhooks of the ledger; creates and validates their secrets. */
export function webhooksOf(ledger: Ledger, clock: Clock, refusalOf: (url: string) => string | undefined) {
  const { webhooks } = ledger;
  const now = () => clock.now();
  return {
    refusalOf,
    /** Returns why the secret is not valid for this signature; undefined if it is. */
    refusalOfSecret(secret: string, signature: Signature): string | undefined {
      const isOther = signature === 'v1' ? secret.startsWith('whsk_') : secret.startsWith('whsec_');
      return isOther ? `this is not a secret for ${signature} signatures` : checkSecret(secret);
    },
    /** Creates a webhook, with a new secret if none is given. The secret is never returned again. */
    create(webhook: NewWebhook, secret?: string): { webhook: Webhook; secret: string } {
      const created = createSecret(webhook.signature, secret);
      return { webhook: webhooks.create(webhook, created, now()), secret: created.secret };
    },
    get: (id: string) => webhooks.get(id, now()),
    list: (page: { limit: number; before?: number | undefined }) => webhooks.list({ ...page, now: now() }),
    update: (id: string, patch: WebhookPatch) => webhooks.update(id, patch, now()),
    /** Replaces the secret; the old one also signs for `keepOldMs`. Returns undefined for an unknown webhook. */
    rotate(id: string, { keepOldMs, secret }: { keepOldMs: number; secret?: string | undefined }) {
      const known = webhooks.get(id, now());
      if (!known) return undefined;
      const created = createSecret(known.signature, secret);
      const webhook = webhooks.rotate(id, created, { oldUntil: now() + keepOldMs, now: now() });
      return webhook && { webhook, secret: created.secret };
    },
    delete: (id: string) => webhooks.delete(id, now()),
    /** Sends a test event to this webhook only. Returns the id of the delivery. */
    test: (id: string) => ledger.test(id, now()),
  };
}
