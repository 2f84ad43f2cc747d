import type { EventRecord } from '../monitor/event-body.ts';
import {
  type AlertEventType,
  SubmissionEventType,
  TEST_EVENT_TYPE,
  type UpstreamEventType,
} from '../monitor/events.ts';
import { Status } from '../monitor/submission.ts';
import type { SubmissionRow } from './rows.ts';

type Head = { seq: number; event_id: string; at: number; detail: string | null };

type SubmissionEventRow = Head & { type: SubmissionEventType; upstream: string } & Pick<
    SubmissionRow,
    | 'submission_id'
    | 'status'
    | 'tracked_at'
    | 'finalized_at'
    | 'deadline_at'
    | 'metadata'
    | 'callback_url'
    | 'upstream_state'
    | 'error'
    | 'answer'
  > & {
    previous_status: Status | null;
    previous_upstream_state: string | null;
    previous_error: string | null;
    previous_answer: string | null;
  };

export type EventRow =
  | SubmissionEventRow
  | (Head & { type: UpstreamEventType; upstream: string; submission_id: null; answer: null })
  | (Head & { type: AlertEventType | typeof TEST_EVENT_TYPE; submission_id: null; answer: null });

/** An event `o` with what it tells of, as that was then: its row of history never changes. */
export const EVENT_COLUMNS = `
  o.seq, o.id AS event_id, o.type, o.at, o.upstream, o.detail,
  s.submission_id, s.tracked_at, s.finalized_at, s.deadline_at, s.metadata, s.callback_url,
  h.status, h.upstream_state, h.error, h.answer,
  p.status AS previous_status, p.upstream_state AS previous_upstream_state, p.error AS previous_error,
  p.answer AS previous_answer`;
export const EVENT_JOINS = `
  LEFT JOIN submissions s ON s.id = o.submission
  LEFT JOIN history h ON h.seq = o.history_seq
  LEFT JOIN history p ON p.submission = h.submission AND p.version = h.version - 1`;

export function toEventRecord(row: EventRow): EventRecord {
  const { seq, event_id: id, at } = row;
  if (row.submission_id !== null) return { seq, id, at, ...ofSubmission(row) };
  if ('upstream' in row && row.upstream !== null) return { seq, id, at, type: row.type, upstream: row.upstream };
  const detail = JSON.parse(row.detail ?? '{}');
  if (row.type === TEST_EVENT_TYPE) return { seq, id, at, type: row.type, webhookId: detail.webhookId };
  return { seq, id, at, type: row.type as AlertEventType, alert: detail };
}

function ofSubmission(row: SubmissionEventRow) {
  const { type, status, error, answer } = row;
  const now = { status, upstreamState: row.upstream_state, error, answer };
  const before = {
    status: row.previous_status ?? status,
    upstreamState: row.previous_upstream_state,
    error: row.previous_error,
    answer: row.previous_answer,
  };
  return {
    type,
    // To be stuck is no change: the row of history is the one that was the newest then.
    previous: type === SubmissionEventType.stuck ? now : before,
    submission: {
      ...now,
      submissionId: row.submission_id,
      upstream: row.upstream,
      trackedAt: row.tracked_at,
      // It is set once, by the change that made it finalized.
      finalizedAt: status === Status.finalized ? row.finalized_at : null,
      deadlineAt: row.deadline_at,
      metadata: row.metadata === null ? null : JSON.parse(row.metadata),
    },
  };
}
