/** Our status of a submission. The upstream's own `state` is kept beside it, as it came. */
export const Status = {
  /** Accepted, not seen upstream yet. */
  tracking: 'tracking',
  /** Seen upstream, not final. */
  pending: 'pending',
  /** The upstream says Error. Provisional: it re-sends failed submissions. */
  failing: 'failing',
  finalized: 'finalized',
  /** Still Error at the deadline. */
  failed: 'failed',
  /** Not found for the whole grace period. */
  unknown: 'unknown',
  /** The upstream refuses the id. */
  rejected: 'rejected',
  /** The deadline passed. */
  expired: 'expired',
  /** Stopped by its owner. */
  cancelled: 'cancelled',
} as const;
export type Status = (typeof Status)[keyof typeof Status];

export const STATUSES = Object.values(Status);
export const FINAL_STATUSES = [
  Status.finalized,
  Status.failed,
  Status.unknown,
  Status.rejected,
  Status.expired,
  Status.cancelled,
] as const;

const finals: ReadonlySet<Status> = new Set(FINAL_STATUSES);
export function isFinal(status: Status): boolean {
  return finals.has(status);
}

/** Printable ASCII without spaces: upstreams decide what a valid id is, a UUID is only the usual form. */
export const SUBMISSION_ID_PATTERN = /^[\x21-\x7e]{1,128}$/;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const UUID_LAYOUT = '00000000-0000-0000-0000-000000000000';

/**
 * The form in which an id is compared, stored and shown: a UUID in lower case, as RFC 9562 has it, and any other id as it is. Other spellings
 * of a UUID (in braces, as `urn:uuid:`, without hyphens) are no UUIDs here: they stay as they are, and are ids of their own.
 */
export function canonicalId(id: string): string {
  return UUID.test(id) ? id.toLowerCase() : id;
}

/** How a UUID begins that begins so, in lower case; undefined: no UUID does. */
export function uuidPrefix(prefix: string): string | undefined {
  return UUID.test(prefix + UUID_LAYOUT.slice(prefix.length)) ? prefix.toLowerCase() : undefined;
}

/** All but `.` and `..`: in a path they are steps, which clients take before they ask, however they are encoded. */
export const REACHABLE_ID_PATTERN = /^(?!\.\.?$)/;
export const UNREACHABLE_ID_REASON = 'the ids . and .. can not be tracked: no URL leads to them';

/** A request to track one submission, complete: every default is filled in. Times are epoch milliseconds. */
export type TrackRequest = {
  submissionId: string;
  upstream: string;
  deadlineAt: number;
  /** The grace period, in which "not found" only means "not yet", is the time from tracking until then. See transition.ts. */
  graceEndsAt: number;
  /** From then on a submission that is still open is told to be stuck, once. */
  stuckAt: number;
  metadata: Record<string, unknown> | null;
  /** Where its own events are sent, beside everybody else who wants them. */
  callbackUrl: string | null;
};

/** A submission as the ledger knows it. Times are epoch milliseconds. */
export type Submission = TrackRequest & {
  status: Status;
  trackedAt: number;
  finalizedAt: number | null;
  /** When the newest recorded answer arrived. */
  polledAt: number | null;
  /** Since when, past its deadline, no answer about it could be believed. */
  noResponseSince: number | null;
  /** For how long "not found" has been confirmed, while it could be polled; null: no response that is believed has said so. */
  notFoundMs: number | null;
  /** Requests spent on it. */
  polls: number;
  /** What the upstream's outage clock showed when tracking began; what it adds later moves the deadline and `stuckAt`. */
  outageMsBefore: number;
  stuck: boolean;
  /** Whether the pacer still asks about it: open, or finalized and due for its recheck. */
  watched: boolean;
  /** The number of its newest history row, counted from 1 without holes. */
  version: number;
  /** From the upstream's newest answer. */
  upstreamState: string | null;
  error: string | null;
  /** The upstream's newest envelope, the JSON text as it came. */
  envelope: string | null;
  /** Fields that the ledger holds in a form that can't be read; absent: all can. */
  unreadable?: readonly string[];
};

/** One row of the append-only history: a submission after one change. */
export type HistoryEntry = {
  /** As of a submission. */
  unreadable?: readonly string[];
  seq: number;
  version: number;
  at: number;
  status: Status;
  previousStatus: Status | null;
  upstreamState: string | null;
  error: string | null;
  envelope: string | null;
};
