import { isTime, nearestTime, readStoredObject } from '../../domain/stored.ts';
import { type HistoryEntry, STATUSES, Status, type Submission } from '../../domain/submission.ts';
import { readChanges } from '../../domain/tracking/option-changes.ts';

/** A submission as stored, named like its fields. `endedAt`: the time of its final status. */
export type SubmissionRow = Omit<Submission, 'watched' | 'stuck' | 'metadata' | 'unreadable'> & {
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

export function toSubmission({ id: _id, endedAt: _endedAt, ...row }: SubmissionRow): Submission {
  const metadata = readStoredObject(row.metadata);
  const submission = { ...row, watched: row.watched === 1, stuck: row.stuck === 1, metadata: metadata ?? null };
  const areTimes = isTime(row.trackedAt) && isTime(row.deadlineAt) && isTime(row.finalizedAt ?? 0);
  if (metadata !== undefined && areTimes) return submission;
  const [trackedAt, deadlineAt] = [nearestTime(row.trackedAt), nearestTime(row.deadlineAt)];
  const finalizedAt = row.finalizedAt === null ? null : nearestTime(row.finalizedAt);
  return { ...submission, trackedAt, deadlineAt, finalizedAt, unreadable: unreadableFields(row, metadata) };
}

/** Returns the fields of a submission whose stored values are invalid. `metadata`: the result of readStoredObject. */
export function unreadableFields(
  row: Pick<SubmissionRow, 'trackedAt' | 'finalizedAt' | 'deadlineAt'>,
  metadata: Record<string, unknown> | null | undefined,
): string[] {
  const { trackedAt: tracked_at, finalizedAt: finalized_at, deadlineAt: deadline_at } = row;
  const times = unreadableTimes({ tracked_at, finalized_at, deadline_at });
  return metadata === undefined ? ['metadata', ...times] : times;
}

/** Returns the names of those that are no valid time. */
export function unreadableTimes(times: Readonly<Record<string, number | null>>): string[] {
  return Object.keys(times).filter((name) => !isTime(times[name] ?? 0));
}

/** The history of a submission, by its row, oldest change first. `+?`: see FIND in submission-queries.ts. */
export const HISTORY = `
  SELECT seq, version, at, status, previous_status AS previousStatus, upstream_state AS upstreamState, error,
         response AS envelope, changes
  FROM history WHERE submission = +? ORDER BY version`;

const statuses: ReadonlySet<unknown> = new Set(STATUSES);

export function isStatus(text: unknown): text is Status {
  return statuses.has(text);
}

/** A row of the history as stored. */
export type HistoryRow = Omit<HistoryEntry, 'changes' | 'unreadable'> & { changes: string | null };

/** Replaces invalid values of a row and lists their columns in `unreadable`. */
export function toHistoryEntry(row: HistoryRow): HistoryEntry {
  const { at, status, previousStatus } = row;
  const isPreviousKnown = previousStatus === null || isStatus(previousStatus);
  const changes = row.changes === null ? null : readChanges(row.changes);
  if (isTime(at) && isStatus(status) && isPreviousKnown && changes !== undefined) return { ...row, changes };
  const unreadable = [
    ...unreadableTimes({ at }),
    ...(isStatus(status) ? [] : ['status']),
    ...(isPreviousKnown ? [] : ['previous_status']),
    ...(changes === undefined ? ['changes'] : []),
  ];
  return {
    ...row,
    changes: changes ?? null,
    at: nearestTime(at),
    status: isStatus(status) ? status : Status.tracking,
    previousStatus: isPreviousKnown ? previousStatus : null,
    unreadable,
  };
}
