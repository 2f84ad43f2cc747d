import { storedObject, storedTime } from '../lib/stored.ts';
import { readChanges } from './option-changes.ts';
import type { HistoryEntry, Submission } from './submission.ts';

/** A submission as stored, named like its fields. `endedAt`: the time of its final status. */
export type SubmissionRow = Omit<Submission, 'watched' | 'stuck' | 'metadata'> & {
  id: number;
  watched: number;
  stuck: number;
  endedAt: number | null;
  metadata: string | null;
};

/** Columns of a submission `s`, with the report of the upstream in its newest change `h`. */
export const SUBMISSION_COLUMNS = `
  s.id, s.submission_id AS submissionId, s.upstream, s.status, s.watched, s.stuck, s.version, s.polls,
  s.polled_at AS polledAt, s.no_response_since AS noResponseSince, s.not_found_ms AS notFoundMs,
  s.not_found_since AS notFoundSince, s.deadline_outage_ms_before AS deadlineOutageMsBefore,
  s.tracked_at AS trackedAt, s.finalized_at AS finalizedAt, s.ended_at AS endedAt, s.deadline_at AS deadlineAt,
  s.grace_ends_at AS graceEndsAt, s.stuck_at AS stuckAt, s.outage_ms_before AS outageMsBefore, s.metadata,
  s.callback_url AS callbackUrl, h.upstream_state AS upstreamState, h.error, h.response AS envelope`;

export const SELECT_SUBMISSION = `
  SELECT ${SUBMISSION_COLUMNS} FROM submissions s JOIN history h ON h.submission = s.id AND h.version = s.version`;

/** A pattern for UUIDs in the syntax of GLOB. */
export const UUID_GLOB = [8, 4, 4, 4, 12].map((digits) => '[0-9A-Fa-f]'.repeat(digits)).join('-');

/** Throws DamagedRowError. */
export function toSubmission({ id: _id, endedAt: _endedAt, ...row }: SubmissionRow): Submission {
  const name = `the submission ${row.submissionId}`;
  storedTime(row.trackedAt, name, 'tracked_at');
  storedTime(row.deadlineAt, name, 'deadline_at');
  storedTime(row.finalizedAt ?? 0, name, 'finalized_at');
  return {
    ...row,
    watched: row.watched === 1,
    stuck: row.stuck === 1,
    metadata: storedObject(row.metadata, name, 'metadata'),
  };
}

/**
 * The history of a submission, by its row, oldest change first. `+?`: see FIND in
 * submission-queries.ts.
 */
export const HISTORY = `
  SELECT seq, version, at, status, previous_status AS previousStatus, upstream_state AS upstreamState, error,
         response AS envelope, changes
  FROM history WHERE submission = +? ORDER BY version`;

/** A row of the history as stored. */
export type HistoryRow = Omit<HistoryEntry, 'changes'> & { changes: string | null };

/** Throws DamagedRowError. */
export function toHistoryEntry(row: HistoryRow): HistoryEntry {
  storedTime(row.at, `the history entry ${row.seq}`, 'at');
  return { ...row, changes: row.changes === null ? null : readChanges(row.changes) };
}
