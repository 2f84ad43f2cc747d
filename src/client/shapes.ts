/** What dawatch knows of a submission. Everything below `pending` and `failing` is final. */
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

/** Whether a status never changes any more. */
export function isFinal(status: SubmissionStatus): boolean {
  return !OPEN.includes(status);
}

/** A submission as the HTTP interface shows it. Times are ISO 8601 in UTC. */
export type Submission = {
  submission_id: string;
  /** Which of the configured upstreams has it. */
  upstream: string;
  status: SubmissionStatus;
  /** The upstream's own `state`, as it came. */
  upstream_state: string | null;
  /** The upstream's own `data`, as it came; integers too large for a JSON number are strings. */
  data: Record<string, unknown> | null;
  error: string | null;
  tracked_at: string;
  /** When dawatch first saw it final. */
  finalized_at: string | null;
  /** Until when it may become final; moves by the time that the upstream is out. */
  deadline_at: string;
  /** Requests that were made for it. */
  polls: number;
  metadata: Record<string, unknown> | null;
  /** Only where the ledger is damaged: fields that can't be read, shown as null or as the nearest value. */
  unreadable?: string[] | undefined;
};

/** One change of a submission. */
export type HistoryEntry = {
  /** As of a submission. */
  unreadable?: string[] | undefined;
  /** Counts over all submissions. */
  seq: number;
  at: string;
  status: SubmissionStatus;
  previous_status: SubmissionStatus | null;
  upstream_state: string | null;
  data: Record<string, unknown> | null;
  error: string | null;
};

/** `history`: one entry per change, oldest first. */
export type SubmissionWithHistory = Submission & { history: HistoryEntry[] };

/** `submissions`: newest first. `next_cursor`: for the next page; null at the end. */
export type SubmissionPage = { submissions: Submission[]; next_cursor: string | null };

/** `submissions`: in the order of the request, each once. */
export type Tracked = { accepted: number; already_tracked: number; submissions: Submission[] };

export type TrackOptions = {
  /** Which of the configured upstreams; "default" if absent. */
  upstream?: string;
  /** Until when it may become final, ISO 8601. */
  deadline?: string;
  /** Anything you want back with it, up to 4 KiB of JSON. */
  metadata?: Record<string, unknown>;
  /** Where the events of these submissions are sent, signed with the secret of the webhook `callbacks`. */
  callback_url?: string;
};

/** A user as the upstream has it, whatever its fields. */
export type User = Record<string, unknown>;

/** One lookup of users. */
export type AuditEntry = {
  seq: number;
  at: string;
  /** Name of the credential; "forwarded:" and a short keyed hash: somebody with a token of the upstream's own. */
  caller: string;
  /** Of the credential; null: configured, or a forwarded token. */
  credential_id: number | null;
  /** Of the client that asked; null: an entry of before it was recorded. */
  address: string | null;
  action: string;
  outcome: string;
  detail: string | null;
  /** The e-mail address asked for, as a keyed hash: the same for the same address. */
  email_hash: string | null;
  email_masked: string | null;
};

/** Requests per submission, and mean seconds between finality and the poll that finds it. */
export type PollingCost = { requests: number; lag_s: number };

/** How an upstream is polled now. The document at /openapi.json says what each field means. */
export type UpstreamPacing = {
  upstream: string;
  state: 'closed' | 'down' | 'unauthorized';
  tracked: number;
  /** Requests that one second of lag is worth. */
  lag_price: number;
  /** slots: groups become final with the slots of a chain. age: nothing periodic is known. */
  mode: 'slots' | 'age';
  /** null: no slots are known. `empty_share`: 0 to 1. */
  slot: { period_ms: number; next_event_at: string | null; empty_share: number } | null;
  /** Serial senders; null: the upstream sends all at once. */
  senders: number | null;
  /** Finalized submissions from which this was learned lately. */
  observed: number;
  /** Probability that a submission tracked now is final after so long; empty: nothing is known. */
  curve: { after_ms: number; probability: number }[];
  /** When it would be polled, in ms since tracking. */
  polls_ms: number[];
  /** Per submission; null: not known. */
  cost: { current: PollingCost | null; lower_bound: PollingCost | null; every_five_seconds: PollingCost | null };
  budget: { requests: number; per_ms: number; used: number; concurrency: number; in_flight: number };
  /** The next poll; `at` null: as soon as a request in flight is answered. */
  next: {
    submission_id: string;
    at: string | null;
    reason: 'slot' | 'scout' | 'age' | 'net' | 'recheck' | 'probe';
    held_by: 'budget' | 'pause' | null;
  } | null;
};

/** A submission as it was at the moment of an event; `deadline_at` as it was set. */
export type EventSubmission = Omit<Submission, 'polls'>;

/** What happened to a submission. */
export type SubmissionEvent = {
  /** Stable: who has seen it may drop the event. */
  id: string;
  type: `submission.${'finalized' | 'failing' | 'recovered' | 'failed' | 'unknown' | 'rejected' | 'expired' | 'cancelled' | 'stuck' | 'corrected'}`;
  timestamp: string;
  data: {
    /** Counts over all events: of two about one submission the larger is the newer. */
    sequence: number;
    submission: EventSubmission;
    previous_status: SubmissionStatus;
    previous_upstream_state: string | null;
    previous_error: string | null;
    previous_data: Record<string, unknown> | null;
    /** Only where the ledger is damaged: as of a submission. */
    unreadable?: string[] | undefined;
    /** True: what the upstream said is left out or shortened, because the event would be too long; it stands at `href`. */
    cut: boolean;
    /** Path of the submission on the dawatch server. */
    href: string;
  };
};

/** What happened to an upstream. */
export type UpstreamEvent = {
  id: string;
  type: `upstream.${'down' | 'up' | 'unauthorized'}`;
  timestamp: string;
  data: { sequence: number; upstream: string };
};

/** A condition that those who run dawatch should know of: it begins, still holds, is over. */
export type AlertEvent = {
  id: string;
  type: `alert.${'raised' | 'reminder' | 'resolved'}`;
  timestamp: string;
  data: {
    sequence: number;
    alert: {
      rule:
        | 'stuck'
        | 'failures'
        | 'upstream_down'
        | 'credentials_refused'
        | 'backlog'
        | 'dead_letters'
        | 'webhook_disabled'
        | 'wal_size';
      subject: string;
      summary: string;
      count: number | null;
      since: string;
    };
  };
};

/** A test of one webhook. */
export type TestEvent = {
  id: string;
  type: 'webhook.test';
  timestamp: string;
  data: { sequence: number; webhook_id: string };
};

/** The live feed alone tells this: of the events behind `after`, some may be missing up to `through`. */
export type FeedGap = { id: string; type: 'feed.gap'; data: { after: number; through: number } };

/** What webhooks and the live feed tell. A newer server may send types that are not listed here: pass those over. */
export type DawatchEvent = SubmissionEvent | UpstreamEvent | AlertEvent | TestEvent;
