import type { CommittedChanges, LedgerDatabase } from '../ledger/ledger-database.ts';
import { DamagedRowError, storedObject, storedTime } from '../lib/json.ts';
import {
  AlertEventType,
  SubmissionEventType,
  TestEventType,
  UpstreamEventType,
} from '../submissions/event-types.ts';
import { optionsBefore } from '../submissions/option-changes.ts';
import { NO_FINALITY, Status } from '../submissions/submission.ts';
import type { SubmissionRow } from '../submissions/submission-queries.ts';
import { ALERT_RULES, type Alert, type DamagedEvent, type EventRecord } from './event-body.ts';

type Head = {
  seq: number;
  event_id: string;
  at: number;
  detail: string | null;
  /** The id of its alert; null for an event of another kind. */
  alert: number | null;
  endedAt: number | null;
};

type Times = 'trackedAt' | 'finalizedAt' | 'finalityAt' | 'finalitySource' | 'deadlineAt';
type Reported = 'status' | 'upstreamState' | 'error' | 'envelope' | 'chain' | 'chainReason';
type SubmissionEventRow = Head & {
  type: SubmissionEventType;
  previousStatus: Status | null;
} & Pick<
    SubmissionRow,
    'submissionId' | 'upstream' | 'metadata' | 'callbackUrl' | Times | Reported
  > &
  Record<'previousState' | 'previousError' | 'previousEnvelope' | 'laterChanges', string | null>;

export type EventRow =
  | SubmissionEventRow
  | (Head & { type: UpstreamEventType; upstream: string; submissionId: null; envelope: null })
  | (Head & { type: AlertEventType | TestEventType; submissionId: null; envelope: null });

/**
 * Without its limit, an event would read all later changes, each with two sets of metadata. The
 * condition on `changes` comes first, because few rows have any.
 */
const firstChangeOf = (option: keyof ReturnType<typeof optionsBefore>) => `
  (SELECT version FROM history
   WHERE submission = h.submission AND version > h.version AND changes IS NOT NULL
     AND changes ->> '$.${option}' IS NOT NULL
   ORDER BY version LIMIT 1)`;

/**
 * Columns and joins of an event `o` with its subject as of the event. `laterChanges`: the first
 * later change of each option, one JSON text per line; comparing versions first halves the time if
 * there is none. A callback is sent to the current URL. `endedAt`: when the reported condition
 * ended, if it has.
 */
export const EVENT_COLUMNS = `
  o.seq, o.id AS event_id, o.type, o.at, o.upstream, o.detail, o.alert,
  CASE
    WHEN o.type = 'alert.raised'
      THEN (SELECT at FROM outbox WHERE alert = o.alert AND type = 'alert.resolved')
    WHEN o.type IN ('upstream.down', 'upstream.unauthorized')
      THEN (SELECT at FROM outbox WHERE upstream = o.upstream AND seq > o.seq AND type = 'upstream.up' ORDER BY seq LIMIT 1)
    WHEN o.type = 'upstream.up'
      THEN (SELECT out_since FROM upstreams WHERE name = o.upstream AND state <> 'up')
    WHEN s.status IN ('finalized', 'cancelled') AND h.status <> s.status THEN s.ended_at
  END AS endedAt,
  s.submission_id AS submissionId, s.tracked_at AS trackedAt, s.finalized_at AS finalizedAt,
  s.finality_at AS finalityAt, s.finality_source AS finalitySource,
  s.deadline_at AS deadlineAt, s.metadata, s.callback_url AS callbackUrl,
  h.status, h.upstream_state AS upstreamState, h.error, h.response AS envelope,
  h.chain, h.chain_reason AS chainReason,
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

/** Never throws: an event whose rows are damaged does not block those after it. */
export function toEventRecord(row: EventRow): EventRecord | DamagedEvent {
  const { seq, event_id: id, type, at } = row;
  try {
    return { seq, id, at, ...contentOf(row) };
  } catch (error) {
    if (!(error instanceof DamagedRowError)) throw error;
    return { seq, id, type, at, damage: error };
  }
}

type Content = EventRecord extends infer Event
  ? Event extends EventRecord
    ? Omit<Event, 'seq' | 'id' | 'at'>
    : never
  : never;

function contentOf(row: EventRow): Content {
  const name = `the event ${row.event_id}`;
  storedTime(row.at, name, 'at');
  if (isSubmissionEvent(row)) return ofSubmission(row);
  const detail = storedObject(row.detail, name, 'detail');
  if (isOneOf(UpstreamEventType, row.type)) {
    const upstream = 'upstream' in row ? row.upstream : '';
    const { endedAt } = row;
    return { type: row.type, upstream, reason: String(detail?.reason ?? ''), endedAt };
  }
  if (row.type === TestEventType.webhook && typeof detail?.webhookId === 'string')
    return { type: row.type, webhookId: detail.webhookId };
  if (row.type === TestEventType.channel && typeof detail?.channel === 'string')
    return { type: row.type, channel: detail.channel };
  if (isOneOf(AlertEventType, row.type) && isAlert(detail)) {
    storedTime(detail.since, name, 'detail');
    return { type: row.type, alert: detail, endedAt: row.endedAt };
  }
  throw new DamagedRowError(name, 'detail');
}

function isSubmissionEvent(row: EventRow): row is SubmissionEventRow {
  return isOneOf(SubmissionEventType, row.type);
}

function isOneOf<T extends string>(types: Record<string, T>, type: string): type is T {
  return Object.values(types).includes(type as T);
}

function isAlert(detail: Record<string, unknown> | null): detail is Alert {
  return typeof detail?.summary === 'string' && ALERT_RULES.includes(detail.rule as never);
}

/** Its event belongs to no submission; null for any other event. */
export function testedCallback(row: EventRow): string | null {
  const detail =
    row.type === TestEventType.webhook
      ? storedObject(row.detail, `the event ${row.event_id}`, 'detail')
      : null;
  return typeof detail?.callbackUrl === 'string' ? detail.callbackUrl : null;
}

function ofSubmission(row: SubmissionEventRow) {
  const { type, submissionId, upstream, status, upstreamState, error, envelope } = row;
  const name = `the event ${row.event_id}`;
  // STRICT tables and their foreign keys guarantee both, unless the file is damaged.
  if (submissionId === null || status === null) throw new DamagedRowError(name, 'submission');
  const now = { status, upstreamState, error, envelope };
  const { chain, chainReason, finalizedAt, finalityAt, finalitySource } = row;
  const finality = { finalizedAt, finalityAt, finalitySource };
  const before = {
    status: row.previousStatus ?? status,
    upstreamState: row.previousState,
    error: row.previousError,
    envelope: row.previousEnvelope,
  };
  const options = { ...row, ...optionsBefore(row.laterChanges?.split('\n') ?? []) };
  return {
    type,
    previous: type === SubmissionEventType.stuck ? now : before,
    endedAt: row.endedAt,
    submission: {
      ...now,
      chain,
      chainReason,
      submissionId,
      upstream,
      trackedAt: storedTime(options.trackedAt, name, 'tracked_at'),
      // Set once, by the change to finalized, and must not show in earlier events.
      ...(status === Status.finalized ? finality : NO_FINALITY),
      deadlineAt: storedTime(options.deadlineAt, name, 'deadline_at'),
      metadata: storedObject(options.metadata, name, 'metadata'),
    },
  };
}

/** Ends a page early: a response of an upstream may be a megabyte. */
const MAX_PAGE_CHARS = 256 * 1024;

/** Reads the append-only log of events, in commit order. Throws LedgerError. */
export class EventLog {
  readonly #db: LedgerDatabase;
  readonly #added: CommittedChanges<number>;

  /** `added`: the sequence numbers of new events. */
  constructor(database: LedgerDatabase, added: CommittedChanges<number>) {
    this.#db = database;
    this.#added = added;
  }

  /** Even if it was pruned; 0 if there has been none. */
  newestSeq(): number {
    return Number(this.#db.value("SELECT seq FROM sqlite_sequence WHERE name = 'outbox'") ?? 0);
  }

  /** Up to which events may be missing, after pruning or a restored backup; 0 if none is. */
  missingThrough(): number {
    const sql = "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'events_missing_through'";
    return Number(this.#db.value(sql) ?? 0);
  }

  /** Oldest first, at most `limit`; empty only if there is no newer event. */
  after(seq: number, limit: number): (EventRecord | DamagedEvent)[] {
    const events: (EventRecord | DamagedEvent)[] = [];
    let chars = 0;
    for (const row of this.#db.iterate<EventRow>(AFTER, seq, limit)) {
      events.push(toEventRecord(row));
      chars += row.envelope?.length ?? 0;
      if (chars > MAX_PAGE_CHARS) break;
    }
    return events;
  }

  /** Calls `listener` after the commit. Returns a function that removes it. */
  onAppended(listener: () => void): () => void {
    return this.#added.onCommitted(() => listener());
  }
}

const AFTER = `SELECT ${EVENT_COLUMNS} FROM outbox o ${EVENT_JOINS} WHERE o.seq > ? ORDER BY o.seq LIMIT ? + 0`;
