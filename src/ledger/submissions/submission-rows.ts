import { isTime, nearestTime, readStoredObject } from '../../domain/stored.ts';
import { type HistoryEntry, STATUSES, Status, type Submission } from '../../domain/submission.ts';

/** A row of `submissions`. */
type SubmissionOwnRow = {
  id: number;
  submission_id: string;
  upstream: string;
  status: Status;
  watched: number;
  stuck: number;
  version: number;
  polls: number;
  polled_at: number | null;
  unanswered_since: number | null;
  not_found_ms: number | null;
  tracked_at: number;
  finalized_at: number | null;
  ended_at: number | null;
  deadline_at: number;
  grace_ends_at: number;
  stuck_at: number;
  outage_ms_before: number;
  metadata: string | null;
  callback_url: string | null;
};

/** What the upstream reported, as stored with each change in the history. */
type ReportedRow = { upstream_state: string | null; error: string | null; answer: string | null };

/** A submission with the report of its newest change. */
export type SubmissionRow = SubmissionOwnRow & ReportedRow;

export const SELECT_SUBMISSION = `
  SELECT s.*, h.upstream_state, h.error, h.answer
  FROM submissions s JOIN history h ON h.submission = s.id AND h.version = s.version`;

/** A pattern for UUIDs in the syntax of GLOB. */
export const UUID_GLOB = [8, 4, 4, 4, 12].map((digits) => '[0-9A-Fa-f]'.repeat(digits)).join('-');

export function toSubmission(row: Omit<SubmissionRow, 'id' | 'ended_at'>): Submission {
  const metadata = readStoredObject(row.metadata);
  const submission: Submission = {
    submissionId: row.submission_id,
    upstream: row.upstream,
    status: row.status,
    watched: row.watched === 1,
    stuck: row.stuck === 1,
    version: row.version,
    polls: row.polls,
    polledAt: row.polled_at,
    noResponseSince: row.unanswered_since,
    notFoundMs: row.not_found_ms,
    trackedAt: row.tracked_at,
    finalizedAt: row.finalized_at,
    deadlineAt: row.deadline_at,
    graceEndsAt: row.grace_ends_at,
    stuckAt: row.stuck_at,
    outageMsBefore: row.outage_ms_before,
    metadata: metadata ?? null,
    callbackUrl: row.callback_url,
    upstreamState: row.upstream_state,
    error: row.error,
    envelope: row.answer,
  };
  const areTimes = isTime(row.tracked_at) && isTime(row.deadline_at) && isTime(row.finalized_at ?? 0);
  if (metadata !== undefined && areTimes) return submission;
  const [trackedAt, deadlineAt] = [nearestTime(row.tracked_at), nearestTime(row.deadline_at)];
  const finalizedAt = row.finalized_at === null ? null : nearestTime(row.finalized_at);
  return { ...submission, trackedAt, deadlineAt, finalizedAt, unreadable: unreadableFields(row, metadata) };
}

/** Returns the fields of a submission whose stored values are invalid. `metadata`: the result of readStoredObject. */
export function unreadableFields(
  row: Pick<SubmissionRow, 'tracked_at' | 'finalized_at' | 'deadline_at'>,
  metadata: Record<string, unknown> | null | undefined,
): string[] {
  const { tracked_at, finalized_at, deadline_at } = row;
  const times = unreadableTimes({ tracked_at, finalized_at, deadline_at });
  return metadata === undefined ? ['metadata', ...times] : times;
}

/** Returns the names of those that are no valid time. */
export function unreadableTimes(times: Readonly<Record<string, number | null>>): string[] {
  return Object.keys(times).filter((name) => !isTime(times[name] ?? 0));
}

export type HistoryRow = ReportedRow & {
  seq: number;
  version: number;
  at: number;
  status: Status;
  previous_status: Status | null;
};

const statuses: ReadonlySet<unknown> = new Set(STATUSES);

export function isStatus(text: unknown): text is Status {
  return statuses.has(text);
}

export function toHistoryEntry(row: HistoryRow): HistoryEntry {
  const { status, previous_status: previousStatus } = row;
  const entry: HistoryEntry = {
    seq: row.seq,
    version: row.version,
    at: row.at,
    status,
    previousStatus,
    upstreamState: row.upstream_state,
    error: row.error,
    envelope: row.answer,
  };
  const isKnown = isStatus(status) && (previousStatus === null || isStatus(previousStatus));
  if (isKnown && isTime(row.at)) return entry;
  const unreadable = [
    ...unreadableTimes({ at: row.at }),
    ...(isStatus(status) ? [] : ['status']),
    ...(previousStatus === null || isStatus(previousStatus) ? [] : ['previous_status']),
  ];
  return {
    ...entry,
    at: nearestTime(row.at),
    status: isStatus(status) ? status : Status.tracking,
    previousStatus: isStatus(previousStatus) ? previousStatus : null,
    unreadable,
  };
}
