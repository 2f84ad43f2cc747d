import type { Delivery, DeliveryAttempt, DeliveryState } from '../domain/notifications/delivery.ts';
import type { EventRecord, UnreadableEvent } from '../domain/notifications/event-body.ts';
import type { NewWebhook, Webhook, WebhookPatch } from '../domain/notifications/webhook.ts';
import type { HistoryEntry, Status, Submission } from '../domain/submission.ts';
import type { TrackBody } from '../domain/track-request.ts';
import type { HourStats, MinuteStats } from '../stats/rolling-hour.ts';
import type { LookupResult } from '../watch/cached-lookup.ts';
import type { TrackResult } from '../watch/ports.ts';
import type { UpstreamHealth, UpstreamPacing } from '../watch/watcher.ts';

export type TrackRequestResult = TrackResult | { kind: 'invalid'; field: string; reason: string };

/** What the routes do with submissions. */
export type Submissions = {
  track(body: TrackBody): TrackRequestResult;
  /** The same of each of them, in one commit. */
  trackBatch(bodies: readonly TrackBody[]): TrackRequestResult[];
  get(submissionId: string): Submission | undefined;
  /** Each with its history, oldest first, all as of one moment; undefined: it was never tracked. */
  getWithHistory(submissionIds: readonly string[]): ({ submission: Submission; history: HistoryEntry[] } | undefined)[];
  list(query: { status?: Status | undefined; limit: number; before?: number | undefined }): {
    submissions: Submission[];
    nextBefore: number | null;
  };
  /** In the order of the ids. */
  findByPrefix(query: { prefix: string; limit: number; after?: string | undefined }): {
    submissions: Submission[];
    nextAfter: string | null;
  };
  /** All in one commit. */
  cancel(submissionIds: readonly string[]): (Submission | undefined)[];
  waitUntilFinal(submissionId: string, timeoutMs: number, signal: AbortSignal): Promise<void>;
  deadlineAt(submission: Submission): number;
};

/** Answers for the upstream about single submissions. */
export type SubmissionInfo = {
  hasUpstream(name: string): boolean;
  /** Clients share the request budget of the upstream. */
  lookUp(submissionId: string, upstream: string, client: string): Promise<LookupResult>;
};

/** Every event there is, in the order in which they were committed, as the live feed reads them. */
export type EventLog = {
  /** 0 if there never was one. */
  newestSeq(): number;
  /** Events with numbers up to this one may be missing; 0: none is. */
  missingThrough(): number;
  /** The next ones after `seq`, oldest first, at most `limit`; empty only if there is nothing newer. */
  after(seq: number, limit: number): (EventRecord | UnreadableEvent)[];
  /** Calls `listener` after every commit that added events, until the function it gives back is called. */
  onAppended(listener: () => void): () => void;
};

/** Whom events are sent to over HTTP. */
export type Webhooks = {
  /** Why nothing is ever sent to that address; undefined: it may be. */
  refusalOf(url: string): string | undefined;
  /** Why that can't be a secret of this kind; undefined: it can. */
  refusalOfSecret(secret: string, signature: Webhook['signature']): string | undefined;
  /** `secret` undefined: one is made. The secret is given back this once. */
  create(webhook: NewWebhook, secret?: string): { webhook: Webhook; secret: string };
  get(id: string): Webhook | undefined;
  /** Newest first. */
  list(query: { limit: number; before?: number | undefined }): { webhooks: Webhook[]; nextBefore: number | null };
  update(id: string, patch: WebhookPatch): Webhook | undefined;
  /** The old secret signs too for `keepOldMs`. Undefined: there is no such webhook. */
  rotate(
    id: string,
    options: { keepOldMs: number; secret?: string | undefined },
  ): { webhook: Webhook; secret: string } | undefined;
  delete(id: string): boolean;
  /** Sends an event to it alone. Gives back the number of the delivery. */
  test(id: string): number | undefined;
};

/** Which event was sent where, and what came of it. */
export type Deliveries = {
  get(
    id: number,
  ): { delivery: Delivery; event: EventRecord | UnreadableEvent; attempts: DeliveryAttempt[] } | undefined;
  /** Newest first. */
  list(query: {
    destination?: string | undefined;
    state?: DeliveryState | undefined;
    submissionId?: string | undefined;
    eventId?: string | undefined;
    limit: number;
    before?: number | undefined;
  }): { deliveries: Delivery[]; nextBefore: number | null };
  replay(id: number): 'waiting' | 'unknown' | 'disabled' | 'discarded';
  /** Every dead letter of the destination whose event is from then on or later. Undefined: nothing is sent there. */
  replayDead(destination: string, since: number): number | undefined;
};

/** service: submissions. user: looking up one user. admin: everything. */
export const ROLES = ['service', 'user', 'admin'] as const;
export type Role = (typeof ROLES)[number];

export type Caller = {
  /** null: it is configured, not in the ledger. */
  id: number | null;
  role: Role;
  /** For the audit: never the secret. */
  name: string;
};

/** What a share is counted by: the credential. */
export function clientOf(caller: Caller | undefined): string {
  return caller === undefined ? '' : `${caller.id ?? caller.name}`;
}

/** Whose secret this is, by its SHA-256; undefined: nobody's, or revoked. */
export type Credentials = (hash: Buffer) => Caller | undefined;

export type Health = {
  ledgerWritable: boolean;
  upstreams: UpstreamHealth[];
  /** Undefined: there is none. */
  redis?:
    | {
        state: 'up' | 'away';
        reason: 'unreachable' | 'not_answering' | 'refused' | null;
        workers: readonly { name: string; version: string; in_flight: number; concurrency: number }[];
        refusedWorkers: number;
      }
    | undefined;
};

/** What is going on now, and how the last hour was. */
export type Overview = {
  submissions: Record<Status, number>;
  minutes: MinuteStats[];
  hour: HourStats;
  upstreams: UpstreamPacing[];
  oldestOpen: Pick<Submission, 'submissionId' | 'upstream' | 'status' | 'trackedAt'>[];
  deliveries: { waiting: number; dead: number; oldestWaitingAt: number | null };
  /** null: there is no Redis. */
  workers: number | null;
};

/** A file that browsers load, as it is sent. */
export type Asset = { path: string; contentType: string; body: Buffer; policy?: string | undefined };

/** What an error of the house means to a client; undefined: nothing it should know. */
export type ErrorToProblem = (error: unknown) => { status: 503 | 507; detail: string; retryAfterS: number } | undefined;

/** A user as the upstream keeps them, every field as it came. */
type UserRecord = Record<string, unknown>;

/** What a lookup of users came to. `detail` is for the log: it holds nothing of what was sent or answered. */
export type UserLookup<T> =
  | { kind: 'found'; value: T }
  | { kind: 'not_found' }
  | { kind: 'unauthorized' }
  | { kind: 'forbidden' }
  /** Too many are under way already: the upstream was not asked. */
  | { kind: 'busy' }
  | {
      kind: 'unavailable';
      reason: 'timeout' | 'network' | 'too_large' | 'http_status' | 'throttled' | 'malformed';
      detail: string;
      retryAfterMs: number | null;
    };

/** The users of the upstream. `authorization` is the caller's own header, for an upstream that dawatch has no bearer of. */
export type Users = {
  /** Whether callers show the upstream's own token, and not one of dawatch. */
  forwards: boolean;
  maxLimit: number;
  getUser(user: { name: string; email: string }, authorization?: string): Promise<UserLookup<UserRecord>>;
  listUsers(limit: number, authorization?: string): Promise<UserLookup<UserRecord[]>>;
};

export const AUDIT_ACTIONS = ['users.get', 'users.list'] as const;
/** refused: the caller may not, says dawatch or the upstream. failed: no usable answer of the upstream. busy: it was not asked. */
export const AUDIT_RESULTS = ['found', 'not_found', 'refused', 'failed', 'busy'] as const;

export type AuditEntry = {
  /** The name of the credential; "forwarded": somebody with a token of the upstream's own. */
  caller: string;
  credentialId: number | null;
  /** Of the client. */
  address: string;
  action: (typeof AUDIT_ACTIONS)[number];
  outcome: (typeof AUDIT_RESULTS)[number];
  /** Without personal data. */
  detail: string | null;
};

export type AuditRecord = {
  seq: number;
  at: number;
  /** As in the entry; of somebody with a token of the upstream's own with a short hash of that: "forwarded:1a2b3c4d". */
  caller: string;
  credentialId: number | null;
  /** Of the client; null: it was not recorded then. */
  address: string | null;
  action: string;
  outcome: string;
  detail: string | null;
  emailHash: string | null;
  emailMasked: string | null;
};

/** Who looked up which users. */
export type Audit = {
  /**
   * It is on the disk when this returns; throws if it can't be written. The address is never kept as it is, nor `bearer`,
   * which is what a forwarded caller showed.
   */
  add(entry: AuditEntry & { email: string | null; bearer?: string | undefined }): void;
  /** Newest first. */
  list(query: { limit: number; before?: number | undefined }): { entries: AuditRecord[]; nextBefore: number | null };
};
