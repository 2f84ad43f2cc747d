import type { HistoryEntry, Status, Submission } from '../monitor/submission.ts';

/** What stands in its own row. */
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

/** What the upstream said, as it stands in a row of history. */
type SaidRow = { upstream_state: string | null; error: string | null; answer: string | null };

/** With what its newest row of history says. */
export type SubmissionRow = SubmissionOwnRow & SaidRow;

export const SELECT_SUBMISSION = `
  SELECT s.*, h.upstream_state, h.error, h.answer
  FROM submissions s JOIN history h ON h.submission = s.id AND h.version = s.version`;

export function toSubmission(row: Omit<SubmissionRow, 'id' | 'ended_at'>): Submission {
  return {
    submissionId: row.submission_id,
    upstream: row.upstream,
    status: row.status,
    watched: row.watched === 1,
    stuck: row.stuck === 1,
    version: row.version,
    polls: row.polls,
    polledAt: row.polled_at,
    unansweredSince: row.unanswered_since,
    trackedAt: row.tracked_at,
    finalizedAt: row.finalized_at,
    deadlineAt: row.deadline_at,
    graceEndsAt: row.grace_ends_at,
    stuckAt: row.stuck_at,
    outageMsBefore: row.outage_ms_before,
    metadata: row.metadata === null ? null : JSON.parse(row.metadata),
    callbackUrl: row.callback_url,
    upstreamState: row.upstream_state,
    error: row.error,
    answer: row.answer,
  };
}

export type HistoryRow = SaidRow & {
  seq: number;
  version: number;
  at: number;
  status: Status;
  previous_status: Status | null;
};

export function toHistoryEntry(row: HistoryRow): HistoryEntry {
  return {
    seq: row.seq,
    version: row.version,
    at: row.at,
    status: row.status,
    previousStatus: row.previous_status,
    upstreamState: row.upstream_state,
    error: row.error,
    answer: row.answer,
  };
}
