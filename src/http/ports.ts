import type { NewWebhook, Webhook, WebhookPatch } from '../domain/notifications/webhook.ts';
import type { Status, Submission } from '../domain/submission.ts';
import type { TrackBody } from '../domain/track-request.ts';
import type { AuditTrail } from '../ledger/access/audit.ts';
import type { Deliveries as DeliveryStore } from '../ledger/deliveries/deliveries.ts';
import type { Outbox } from '../ledger/events/outbox.ts';
import type { SubmissionQueries } from '../ledger/submissions/submission-queries.ts';
import type { HourStats, MinuteStats } from '../stats/rolling-hour.ts';
import type { UpstreamUsers } from '../upstream/users.ts';
import type { LookupResult } from '../watch/cached-lookup.ts';
import type { TrackResult } from '../watch/ports.ts';
import type { UpstreamHealth, UpstreamPacing } from '../watch/watcher.ts';

export type TrackRequestResult = TrackResult | { kind: 'invalid'; field: string; reason: string };

export type Submissions = Pick<SubmissionQueries, 'get' | 'getWithHistory' | 'list' | 'findByPrefix'> & {
  track(body: TrackBody): TrackRequestResult;
  /** Tracks each body for itself, all in one commit. */
  trackBatch(bodies: readonly TrackBody[]): TrackRequestResult[];
  /** Cancels all in one commit; undefined if one was never tracked. */
  cancel(submissionIds: readonly string[]): (Submission | undefined)[];
  waitUntilFinal(submissionId: string, timeoutMs: number, signal: AbortSignal): Promise<void>;
  deadlineAt(submission: Submission): number;
};

/** Cached lookups in the upstream's own format. */
export type SubmissionInfo = {
  hasUpstream(name: string): boolean;
  /** `client`: the name that the request budget of the upstream is shared by. */
  lookUp(submissionId: string, upstream: string, client: string): Promise<LookupResult>;
};

/** All events in commit order, for the live feed. */
export type EventLog = Pick<Outbox, 'newestSeq' | 'missingThrough' | 'after' | 'onAppended'>;

/** Webhook endpoints. */
export type WebhookService = {
  /** Returns why the URL is not allowed; undefined if it is. */
  refusalOf(url: string): string | undefined;
  /** Returns why the secret is not valid for this signature; undefined if it is. */
  refusalOfSecret(secret: string, signature: Webhook['signature']): string | undefined;
  /** Creates a webhook, with a new secret if none is given. The secret is never returned again. */
  create(webhook: NewWebhook, secret?: string): { webhook: Webhook; secret: string };
  get(id: string): Webhook | undefined;
  /** Newest first. */
  list(query: { limit: number; before?: number | undefined }): { webhooks: Webhook[]; nextBefore: number | null };
  update(id: string, patch: WebhookPatch): Webhook | undefined;
  /** Replaces the secret; the old one also signs for `keepOldMs`. Returns undefined for an unknown webhook. */
  rotate(
    id: string,
    options: { keepOldMs: number; secret?: string | undefined },
  ): { webhook: Webhook; secret: string } | undefined;
  delete(id: string): boolean;
  /** Sends a test event to this webhook only. Returns the id of the delivery. */
  test(id: string): number | undefined;
};

export type DeliveryService = Pick<DeliveryStore, 'get' | 'list'> & {
  replay(id: number): 'waiting' | 'unknown' | 'disabled' | 'discarded';
  /** Replays dead letters of events since `since` and returns their number; undefined if nothing is sent to the destination. */
  replayDead(destination: string, since: number): number | undefined;
};

/** service: submissions. user: lookups of single users. admin: everything. */
export const ROLES = ['service', 'user', 'admin'] as const;
export type Role = (typeof ROLES)[number];

export type Caller = {
  /** null for a configured credential. */
  id: number | null;
  role: Role;
  /** For the audit. */
  name: string;
};

/** Returns the key by which limits are shared between clients: the credential. */
export function clientOf(caller: Caller | undefined): string {
  return caller === undefined ? '' : `${caller.id ?? caller.name}`;
}

/** Returns the owner of a secret by its SHA-256; undefined if it is unknown or revoked. */
export type Credentials = (hash: Buffer) => Caller | undefined;

export type Readiness = {
  ledgerWritable: boolean;
  upstreams: UpstreamHealth[];
  /** Undefined without Redis. */
  redis?:
    | {
        state: 'up' | 'away';
        reason: 'unreachable' | 'not_answering' | 'refused' | null;
        workers: readonly { name: string; version: string; in_flight: number; concurrency: number }[];
        refusedWorkers: number;
      }
    | undefined;
};

/** The current state and the last hour. */
export type Overview = {
  submissions: Record<Status, number>;
  minutes: MinuteStats[];
  hour: HourStats;
  upstreams: UpstreamPacing[];
  oldestOpen: Pick<Submission, 'submissionId' | 'upstream' | 'status' | 'trackedAt'>[];
  deliveries: { waiting: number; dead: number; oldestWaitingAt: number | null };
  /** null without Redis. */
  workers: number | null;
};

/** A file of the dashboard. */
export type Asset = { path: string; contentType: string; body: Buffer; policy?: string | undefined };

/** Maps an error of dawatch to a problem; undefined for an unexpected error. */
export type ErrorToProblem = (error: unknown) => { status: 503 | 507; detail: string; retryAfterS: number } | undefined;

/** User lookups. `authorization` is the caller's own header, used if no bearer is configured for the upstream. */
export type Users = Pick<UpstreamUsers, 'getUser' | 'listUsers'> & {
  /** Whether callers send the upstream's own token instead of one of dawatch. */
  forwards: boolean;
  maxLimit: number;
};

export const AUDIT_ACTIONS = ['users.get', 'users.list'] as const;
/** refused: by dawatch or the upstream. failed: no usable response of the upstream. busy: not sent. */
export const AUDIT_RESULTS = ['found', 'not_found', 'refused', 'failed', 'busy'] as const;

export type LookupAudit = {
  /** The name of the credential; "forwarded" for a token of the upstream. */
  caller: string;
  credentialId: number | null;
  /** Address of the client. */
  address: string;
  action: (typeof AUDIT_ACTIONS)[number];
  result: (typeof AUDIT_RESULTS)[number];
  /** Without personal data. */
  detail: string | null;
};

export type Audit = Pick<AuditTrail, 'list'> & {
  /**
   * Stores an entry durably; throws if it cannot be written. Neither the e-mail address nor `bearer`, the token of a forwarded
   * caller, is stored in plain text.
   */
  add(entry: LookupAudit & { email: string | null; bearer?: string | undefined }): void;
};
