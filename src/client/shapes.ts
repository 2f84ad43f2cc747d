/** Status of a submission. All but `tracking`, `pending` and `failing` are final. */
export type SubmissionStatus =
  | 'tracking'
  | 'pending'
  | 'failing'
  | 'finalized'
  | 'failed'
  | 'unknown'
  | 'rejected'
  | 'expired'
  | 'cancelled';

const OPEN: readonly SubmissionStatus[] = ['tracking', 'pending', 'failing'];

/** Returns whether a status is final. */
export function isFinal(status: SubmissionStatus): boolean {
  return !OPEN.includes(status);
}

/** A submission. Times are ISO 8601 in UTC. */
export type Submission = {
  submission_id: string;
  /** Name of the upstream. */
  upstream: string;
  status: SubmissionStatus;
  /** `state` as returned by the upstream. */
  upstream_state: string | null;
  /** `data` as returned by the upstream, with integers too large for a JSON number as strings. */
  data: Record<string, unknown> | null;
  error: string | null;
  tracked_at: string;
  /** When dawatch detected finality. */
  finalized_at: string | null;
  /** Time limit for finality, extended by the duration of upstream outages. */
  deadline_at: string;
  /** Number of polls. */
  polls: number;
  /** Time of the newest response to a poll; null: no poll since tracking began. */
  last_polled_at: string | null;
  /** Earliest time of the next poll; null: none is planned, as for a final submission. */
  next_poll_at: string | null;
  /**
   * Since when the upstream has responded "not found"; null: it has found the submission, or has
   * not responded.
   */
  not_found_since: string | null;
  /** Seconds for which "not found" means "not yet". */
  unknown_grace_s: number;
  /** Seconds after which the open submission is reported as stuck. */
  stuck_after_s: number;
  /** Receiver of its events. Roles other than admin see only scheme, host and port. */
  callback_url: string | null;
  metadata: Record<string, unknown> | null;
};

/**
 * Options before and after a change; absent: unchanged. Of `callback_url` only scheme, host and
 * port.
 */
export type OptionChanges = {
  [Name in 'tracked_at' | 'deadline_at']?: { from: string; to: string };
} & {
  [Name in 'unknown_grace_s' | 'stuck_after_s']?: { from: number; to: number };
} & {
  metadata?: { from: Record<string, unknown> | null; to: Record<string, unknown> | null };
  callback_url?: { from: string | null; to: string | null };
};

/** A change of a submission. */
export type HistoryEntry = {
  /** Sequence number over all submissions. */
  seq: number;
  at: string;
  status: SubmissionStatus;
  previous_status: SubmissionStatus | null;
  upstream_state: string | null;
  data: Record<string, unknown> | null;
  error: string | null;
  /** Present only if a client changed options. */
  changes?: OptionChanges | undefined;
};

/** `history`: one entry per change, oldest first. */
export type SubmissionWithHistory = Submission & { history: HistoryEntry[] };

/** `etag`: of the state of the submission; null if a proxy has removed it. */
export type SubmissionIfChanged =
  | { changed: true; submission: SubmissionWithHistory; etag: string | null }
  | { changed: false; etag: string };

/**
 * Conditions that all apply. Times are ISO 8601; `since` includes its time, `until` excludes it.
 */
export type SubmissionFilter = {
  status?: SubmissionStatus | readonly SubmissionStatus[] | undefined;
  /** Name of the upstream. */
  upstream?: string | undefined;
  /**
   * Up to 10 values at the top level of the metadata. They are compared as text: 4711 finds the
   * number and the text.
   */
  metadata?: Readonly<Record<string, string | number | boolean | null>> | undefined;
  tracked_since?: string | undefined;
  tracked_until?: string | undefined;
  /** The time of the final status. */
  ended_since?: string | undefined;
  ended_until?: string | undefined;
  /** Beginning of the id; for UUIDs in upper or lower case. */
  prefix?: string | undefined;
  /**
   * Part of the id, or of a metadata value at any depth, in upper or lower case; up to 128
   * characters. Has no index.
   */
  search?: string | undefined;
};

/**
 * `next_cursor`: null on the last page. Other pages may have fewer submissions than requested, even
 * none. `examined_to`: the time up to which the page examined, in the order of the list; null on
 * the last page and in the order of ids.
 */
export type SubmissionPage = {
  submissions: Submission[];
  next_cursor: string | null;
  examined_to: string | null;
};

/** Options of a tracking request. */
export type TrackOptionName =
  | 'deadline'
  | 'unknown_grace_s'
  | 'stuck_after_s'
  | 'metadata'
  | 'callback_url';

/** The numbers of submissions, by what the request did to them. */
export type Tracked = {
  /** Newly tracked. */
  accepted: number;
  /** Were already open, and are unchanged. */
  already_tracked: number;
  /** Had already ended, and are unchanged; not included in `already_tracked`. */
  already_final: number;
  /** Had ended, and are tracked again. */
  retracked: number;
  /**
   * In the order of the request, without duplicates. `not_applied`: options that differ from those
   * of an unchanged submission.
   */
  submissions: (Submission & { not_applied?: TrackOptionName[] | undefined })[];
};

/**
 * `submissions`: in the order of the request, without duplicates. `not_found`: ids that were never
 * tracked.
 */
export type FoundSubmissions = { submissions: Submission[]; not_found: string[] };

export type TrackOptions = {
  /** Name of the upstream; default: "default". */
  upstream?: string;
  /** Time limit for finality, ISO 8601. */
  deadline?: string;
  /** Seconds for which "not found" means "not yet"; at least 120 apply. */
  unknown_grace_s?: number;
  /** Seconds after which an open submission is reported as stuck. */
  stuck_after_s?: number;
  /** Stored with the submission, up to 4 KiB of JSON. */
  metadata?: Record<string, unknown>;
  /**
   * Receiver of the events of these submissions. They are signed with the secret of the webhook
   * `callbacks`.
   */
  callback_url?: string;
  /**
   * The trace context of the caller, as in W3C Trace Context. Used if the server exports traces.
   */
  traceparent?: string;
  /**
   * Whether ids that ended as failed, unknown, rejected, expired or cancelled are tracked again.
   */
  retrack?: boolean;
  /** For an import: since when another system has tracked it, ISO 8601. Not in the future. */
  tracked_at?: string;
};

/** A submission with options of its own. */
export type TrackItem = { submission_id: string } & TrackOptions;

/** New options of a submission. Absent fields are unchanged; null removes. */
export type SubmissionPatch = {
  /** Time limit for finality, ISO 8601. */
  deadline?: string;
  unknown_grace_s?: number;
  stuck_after_s?: number;
  /** Replaces the whole object. */
  metadata?: Record<string, unknown> | null;
  callback_url?: string | null;
};

/** A user as returned by the upstream. */
export type User = Record<string, unknown>;

/** A user lookup, or a change by an operator. */
export type AuditEntry = {
  seq: number;
  at: string;
  /**
   * Name of the credential; "forwarded:" and a short keyed hash for a token of the upstream; "cli:"
   * and the user of the system for a command; SIGHUP for a signal; dawatch for the server itself.
   */
  caller: string;
  /** E-mail address or subject of a person who signed in by OpenID Connect. */
  caller_person: string | null;
  /** null: the credential is in the settings, or a forwarded token. */
  credential_id: number | null;
  /**
   * Address of the client; null if there was no request, and for entries before it was recorded.
   */
  address: string | null;
  action: string;
  result: string;
  /** What was changed: the id of a token, webhook, delivery or submission, or a destination. */
  subject: string | null;
  detail: string | null;
  /** Keyed hash of the requested e-mail address. */
  email_hash: string | null;
  email_masked: string | null;
  /** SHA-256 of the preceding entry's hash and of this entry. */
  hash: string;
};

/** `head`: the newest entry, whose hash commits to all entries; null if there is none. */
export type AuditPage = {
  head: { seq: number; hash: string } | null;
  entries: AuditEntry[];
  next_cursor: string | null;
};

/**
 * Conditions that all apply. `action`: one or several. `since`, `until`: ISO 8601. `limit`: 1 to
 * 1,000, default 100.
 */
export type AuditQuery = {
  caller?: string;
  action?: string | readonly string[];
  subject?: string;
  since?: string;
  until?: string;
  limit?: number;
  cursor?: string;
};

/**
 * The result of checking the audit. `entries`: number of entries; if the audit is not intact, of
 * those before the first wrong one.
 */
export type AuditVerification = {
  intact: boolean;
  entries: number;
  /** The hash of the newest entry; null if the audit is not intact. */
  head: string | null;
  /** Number of entries that retention has deleted; null if the audit is not intact. */
  pruned: number | null;
  /** The first wrong entry; null if the audit is intact, or if no single entry is wrong. */
  seq: number | null;
  reason: string | null;
};

/** Requests per submission, and mean seconds between finality and its detection. */
export type PollingCost = { requests: number; lag_s: number };

/** How an upstream is polled. /openapi.json documents each field. */
export type UpstreamPacing = {
  upstream: string;
  state: 'closed' | 'down' | 'unauthorized';
  tracked: number;
  /** Price of one second of lag in requests. */
  lag_price: number;
  /** slots: groups become final at the slots of a chain. age: no periodic pattern is known. */
  mode: 'slots' | 'age';
  /** null: no slots are known. `empty_share`: 0 to 1. */
  slot: { period_ms: number; next_event_at: string | null; empty_share: number } | null;
  /** Number of serial senders; null: the upstream sends in parallel. */
  senders: number | null;
  /** Number of recent finalized submissions behind the model. */
  observed: number;
  /** Cumulative probability of finality by time since tracking; empty: not known. */
  curve: { after_ms: number; probability: number }[];
  /** Scheduled polls of a submission tracked now, in ms since tracking. */
  polls_ms: number[];
  /** Per submission; null: not known. */
  cost: {
    current: PollingCost | null;
    lower_bound: PollingCost | null;
    every_five_seconds: PollingCost | null;
  };
  budget: {
    requests: number;
    per_ms: number;
    used: number;
    concurrency: number;
    in_flight: number;
  };
  /** The next poll; `at` null: when a request in flight completes. */
  next: {
    submission_id: string;
    at: string | null;
    reason: 'slot' | 'scout' | 'age' | 'net' | 'recheck' | 'probe';
    held_by: 'budget' | 'pause' | null;
  } | null;
};

/** Metadata entries that a submission must have with exactly these values. */
export type MetadataFilter = Record<string, string | number | boolean | null>;
