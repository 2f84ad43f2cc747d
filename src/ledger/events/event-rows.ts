import { ALERT_RULES, type Alert } from '../../domain/notifications/alert.ts';
import type { EventRecord, UnreadableEvent } from '../../domain/notifications/event-body.ts';
import {
  AlertEventType,
  SubmissionEventType,
  TestEventType,
  UpstreamEventType,
} from '../../domain/notifications/events.ts';
import { isTime, nearestTime, readStoredObject } from '../../domain/stored.ts';
import { Status } from '../../domain/submission.ts';
import { optionsBefore } from '../../domain/tracking/option-changes.ts';
import { isStatus, type SubmissionRow, unreadableFields } from '../submissions/submission-rows.ts';

type Head = { seq: number; event_id: string; at: number; detail: string | null };

type Times = 'trackedAt' | 'finalizedAt' | 'deadlineAt';
type Reported = 'status' | 'upstreamState' | 'error' | 'envelope';
type SubmissionEventRow = Head & { type: SubmissionEventType; previousStatus: Status | null } & Pick<
    SubmissionRow,
    'submissionId' | 'upstream' | 'metadata' | 'callbackUrl' | Times | Reported
  > &
  Record<'previousState' | 'previousError' | 'previousEnvelope' | 'laterChanges', string | null>;

export type EventRow =
  | SubmissionEventRow
  | (Head & { type: UpstreamEventType; upstream: string; submissionId: null; envelope: null })
  | (Head & { type: AlertEventType | TestEventType; submissionId: null; envelope: null });

/**
 * The version of the first change of an option after the row `h` of the history. Without its limit, an event would read all later
 * changes, each with two sets of metadata. The condition on `changes` comes first, because few rows have any.
 */
const firstChangeOf = (option: keyof ReturnType<typeof optionsBefore>) => `
  (SELECT version FROM history
   WHERE submission = h.submission AND version > h.version AND changes IS NOT NULL
     AND iif(json_valid(changes), changes, NULL) ->> '$.${option}' IS NOT NULL
   ORDER BY version LIMIT 1)`;

/**
 * Columns and joins of an event `o` with its subject as of the event: rows of the history never change, and `laterChanges`
 * has the first later change of each option that events show, one JSON text per line. Without the comparison of versions, it would
 * take half of the time also if there is none. A callback is sent to the current URL.
 */
export const EVENT_COLUMNS = `
  o.seq, o.id AS event_id, o.type, o.at, o.upstream, o.detail,
  s.submission_id AS submissionId, s.tracked_at AS trackedAt, s.finalized_at AS finalizedAt,
  s.deadline_at AS deadlineAt, s.metadata, s.callback_url AS callbackUrl,
  h.status, h.upstream_state AS upstreamState, h.error, h.response AS envelope,
  p.status AS previousStatus, p.upstream_state AS previousState, p.error AS previousError,
  p.response AS previousEnvelope,
  iif(s.version > h.version,
      (SELECT group_concat(changes, char(10) ORDER BY version) FROM history
       WHERE submission = h.submission
         AND version IN (${(['trackedAt', 'deadlineAt', 'metadata'] as const).map(firstChangeOf).join(', ')})), NULL) AS laterChanges`;
export const EVENT_JOINS = `
  LEFT JOIN submissions s ON s.id = o.submission
  LEFT JOIN history h ON h.seq = o.history_seq
  LEFT JOIN history p ON p.submission = h.submission AND p.version = h.version - 1`;

/** Never throws: an invalid row becomes an unreadable event, so that it does not block the events after it. */
export function toEventRecord(row: EventRow): EventRecord | UnreadableEvent {
  const { seq, event_id: id, type, at } = row;
  const content = !ID_PATTERN.test(id) ? 'its id is not one of dawatch' : contentOf(row);
  return typeof content === 'string' ? { seq, id, type, at, unreadable: content } : { seq, id, at, ...content };
}

/** Event ids occur in HTTP headers, in Message-IDs, and in Redis keys, which must not be numbers. */
const ID_PATTERN = /^[a-z][\w-]{0,127}$/i;

type Content = EventRecord extends infer Event
  ? Event extends EventRecord
    ? Omit<Event, 'seq' | 'id' | 'at'>
    : never
  : never;

/** Returns the content of an event, or a text that describes the defect. */
function contentOf(row: EventRow): Content | string {
  if (!isTime(row.at)) return 'its time is missing or not a time';
  if (isSubmissionEvent(row)) {
    if (row.submissionId === null) return 'its submission is missing';
    if (!isStatus(row.status)) return 'its change in the history is missing';
    return ofSubmission(row);
  }
  if (isOneOf(UpstreamEventType, row.type)) {
    const upstream = 'upstream' in row ? row.upstream : null;
    return upstream === null ? 'its upstream is missing' : { type: row.type, upstream };
  }
  const detail = readStoredObject(row.detail);
  if (row.type === TestEventType.webhook)
    return typeof detail?.webhookId === 'string'
      ? { type: row.type, webhookId: detail.webhookId }
      : 'it does not name the webhook that it tests';
  if (row.type === TestEventType.channel)
    return typeof detail?.channel === 'string'
      ? { type: row.type, channel: detail.channel }
      : 'it does not name the channel that it tests';
  if (!isOneOf(AlertEventType, row.type)) return 'its type is unknown';
  return isAlert(detail) ? { type: row.type, alert: detail } : 'its alert cannot be read';
}

function isSubmissionEvent(row: EventRow): row is SubmissionEventRow {
  return isOneOf(SubmissionEventType, row.type);
}

function isOneOf<T extends string>(types: Record<string, T>, type: string): type is T {
  return Object.values(types).includes(type as T);
}

function isAlert(detail: Record<string, unknown> | null | undefined): detail is Alert {
  if (!detail) return false;
  const { rule, subject, summary, count, since, id, link, muted } = detail;
  const isNamed = ALERT_RULES.includes(rule as never) && typeof subject === 'string' && typeof summary === 'string';
  const isLinked = (id === undefined || Number.isSafeInteger(id)) && (link === undefined || typeof link === 'string');
  const isComplete = isNamed && isLinked && (muted === undefined || muted === true);
  return isComplete && (count === null || Number.isSafeInteger(count)) && isTime(since);
}

/** Returns the address of a test of a callback, whose event belongs to no submission; null for any other event. */
export function testedCallback(row: EventRow): string | null {
  const detail = row.type === TestEventType.webhook ? readStoredObject(row.detail) : null;
  return typeof detail?.callbackUrl === 'string' ? detail.callbackUrl : null;
}

function ofSubmission(row: SubmissionEventRow) {
  const { type, submissionId, upstream, status, upstreamState, error, envelope } = row;
  const now = { status, upstreamState, error, envelope };
  const before = {
    status: isStatus(row.previousStatus) ? row.previousStatus : status,
    upstreamState: row.previousState,
    error: row.previousError,
    envelope: row.previousEnvelope,
  };
  const options = { ...row, ...optionsBefore(row.laterChanges?.split('\n') ?? []) };
  const metadata = readStoredObject(options.metadata);
  const unreadable = unreadableFields(options, metadata);
  return {
    type,
    // Becoming stuck does not change the status: the row of history is the newest one at that time.
    previous: type === SubmissionEventType.stuck ? now : before,
    submission: {
      ...now,
      submissionId,
      upstream,
      trackedAt: nearestTime(options.trackedAt),
      // finalized_at is set once, by the change to finalized, and must not show in earlier events.
      finalizedAt: status === Status.finalized && row.finalizedAt !== null ? nearestTime(row.finalizedAt) : null,
      deadlineAt: nearestTime(options.deadlineAt),
      metadata: metadata ?? null,
      ...(unreadable.length > 0 && { unreadable }),
    },
  };
}
