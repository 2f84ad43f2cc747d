import { randomUUID } from 'node:crypto';
import type { Alert } from '../../domain/notifications/alert.ts';
import { callbackDestination, channelDestination, webhookDestination } from '../../domain/notifications/delivery.ts';
import type { EventRecord, UnreadableEvent } from '../../domain/notifications/event-body.ts';
import {
  type AlertEventType,
  type SubmissionEventType,
  TestEventType,
  type UpstreamEventType,
} from '../../domain/notifications/events.ts';
import { CommittedChanges, type LedgerDatabase } from '../file/ledger-database.ts';
import type { SubmissionRow } from '../submissions/submission-rows.ts';
import { EVENT_COLUMNS, EVENT_JOINS, type EventRow, toEventRecord } from './event-rows.ts';
import type { FanOut } from './fan-out.ts';

/** A page of events ends early once it holds this much text of upstream responses, which may be a megabyte each. */
const MAX_PAGE_CHARS = 256 * 1024;

/** Records that events up to the sequence number @through may be missing. The recorded number never decreases. */
export const RECORD_MISSING_EVENTS = `
  INSERT INTO meta (key, value) VALUES ('events_missing_through', CAST(@through AS INTEGER))
  ON CONFLICT DO UPDATE SET value = max(CAST(value AS INTEGER), CAST(excluded.value AS INTEGER))`;

/**
 * The append-only log of events. Events are written in the transaction of the change that they report, together with their
 * deliveries. Throws LedgerError.
 */
export class Outbox {
  readonly #db: LedgerDatabase;
  readonly #fanOut: FanOut;
  readonly #added: CommittedChanges<number>;

  constructor(database: LedgerDatabase, fanOut: FanOut) {
    this.#db = database;
    this.#fanOut = fanOut;
    this.#added = new CommittedChanges(database);
  }

  /** Returns the sequence number of the newest event on the disk, even if that was pruned; 0 if there has been none. */
  newestSeq(): number {
    const newest = Number(this.#db.value("SELECT seq FROM sqlite_sequence WHERE name = 'outbox'") ?? 0);
    return Math.min(newest, this.#lastDurableSeq());
  }

  /** Returns the sequence number up to which events may be missing, after pruning or a restored backup; 0 if none is. */
  missingThrough(): number {
    const sql = "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'events_missing_through'";
    return Number(this.#db.value(sql) ?? 0);
  }

  /**
   * Returns the events after `seq`, oldest first, at most `limit`; empty only if there is no newer event. Events that are not on
   * the disk yet are omitted, because after a power failure other events could get their numbers.
   */
  after(seq: number, limit: number): (EventRecord | UnreadableEvent)[] {
    const events: (EventRecord | UnreadableEvent)[] = [];
    let chars = 0;
    for (const row of this.#db.iterate<EventRow>(AFTER, seq, this.#lastDurableSeq(), limit)) {
      events.push(toEventRecord(row));
      chars += row.envelope?.length ?? 0;
      if (chars > MAX_PAGE_CHARS) break;
    }
    return events;
  }

  /** Calls `listener` once the events that a commit added are on the disk. Returns a function that removes the listener. */
  onAppended(listener: () => void): () => void {
    return this.#added.onDurable(() => listener());
  }

  #lastDurableSeq(): number {
    const firstUnsynced = this.#added.unsynced[0]?.[0];
    return firstUnsynced === undefined ? Number.MAX_SAFE_INTEGER : firstUnsynced - 1;
  }

  /** Must be called inside a transaction, after the change was added to the history. */
  addSubmissionEvent(type: SubmissionEventType, row: SubmissionRow, at: number): void {
    const { id: submission, version, upstream, submissionId, metadata, callbackUrl } = row;
    const seq = this.#add({ type, at, upstream, submission, version });
    this.#fanOut.add({ seq, type, at, submissionId, metadata, callbackUrl });
  }

  /** Directs the undelivered callbacks of a submission to its new URL; null discards them. Must be called inside a transaction. */
  moveCallbacks({ id, callbackUrl }: Pick<SubmissionRow, 'id' | 'callbackUrl'>, to: string | null, at: number): void {
    if (callbackUrl === null) return;
    const events = this.#db.values<number>`SELECT seq FROM outbox WHERE submission = ${id}`;
    const from = callbackDestination(callbackUrl);
    if (to !== null && callbackDestination(to) === from) return;
    for (const seq of events) this.#fanOut.move(seq, from, to === null ? null : callbackDestination(to), at);
  }

  /** Must be called inside a transaction. */
  addUpstreamEvent(type: UpstreamEventType, upstream: string, at: number): void {
    this.#fanOut.add({ seq: this.#add({ type, at, upstream }), type, at });
  }

  /** The event of a muted alert has no deliveries. Must be called inside a transaction. */
  addAlertEvent(type: AlertEventType, alert: Alert, at: number): void {
    const seq = this.#add({ type, at, detail: JSON.stringify(alert) });
    if (!alert.muted) this.#fanOut.add({ seq, type, at });
  }

  /**
   * Adds a test event for one destination only, and returns the id of its delivery. A callback is tested with the webhook of the
   * callbacks and an address. Must be called inside a transaction.
   */
  addTestEvent(test: { webhookId: string; callbackUrl?: string } | { channel: string }, at: number): number {
    const [type, destination] =
      'channel' in test
        ? [TestEventType.channel, channelDestination(test.channel)]
        : [
            TestEventType.webhook,
            test.callbackUrl === undefined ? webhookDestination(test.webhookId) : callbackDestination(test.callbackUrl),
          ];
    const seq = this.#add({ type, at, detail: JSON.stringify(test) });
    return this.#fanOut.addFor({ seq, type, at }, destination);
  }

  /** `submission`, `version`: the row of the history that the event reports. Returns the sequence number. */
  #add(event: {
    type: string;
    at: number;
    upstream?: string;
    submission?: number;
    version?: number;
    detail?: string;
  }): number {
    const { type, at, upstream = null, submission = null, version = null, detail = null } = event;
    // Random instead of counted: after a restored backup, a counted id would name another event.
    const id = `evt_${randomUUID().replaceAll('-', '')}`;
    const { lastInsertRowid } = this.#db.run`
      INSERT INTO outbox (id, type, at, upstream, submission, history_seq, detail)
      VALUES (${id}, ${type}, ${at}, ${upstream}, ${submission},
              (SELECT seq FROM history WHERE submission = ${submission} AND version = ${version}), ${detail})`;
    const seq = Number(lastInsertRowid);
    this.#added.add(seq);
    return seq;
  }
}

const AFTER = `SELECT ${EVENT_COLUMNS} FROM outbox o ${EVENT_JOINS} WHERE o.seq > ? AND o.seq <= ? ORDER BY o.seq LIMIT ?`;
