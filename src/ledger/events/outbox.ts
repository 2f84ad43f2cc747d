import { randomUUID } from 'node:crypto';
import type Database from 'better-sqlite3';
import type { Alert } from '../../domain/notifications/alert.ts';
import type { EventRecord, UnreadableEvent } from '../../domain/notifications/event-body.ts';
import {
  type AlertEventType,
  type SubmissionEventType,
  TEST_EVENT_TYPE,
  type UpstreamEventType,
} from '../../domain/notifications/events.ts';
import type { LedgerDatabase } from '../file/ledger-database.ts';
import type { SubmissionRow } from '../submissions/submission-rows.ts';
import { EVENT_COLUMNS, EVENT_JOINS, type EventRow, toEventRecord } from './event-rows.ts';
import type { FanOut } from './fan-out.ts';
import { MISSING_THROUGH } from './missing-events.ts';

type Added = {
  type: string;
  at: number;
  upstream?: string;
  /** The number of its row, and which of its changes is told. */
  submission?: number;
  version?: number;
  detail?: string;
};
const NOTHING = { upstream: null, submission: null, version: null, detail: null };

/** A page ends early once it holds this much of what the upstream said: an answer may be a megabyte. */
const MAX_PAGE_CHARS = 256 * 1024;

/**
 * The log of what is told to others. An event is read as it was at its moment: its row of history never changes, and of
 * the submission itself only what was fixed when tracking began is taken. Throws LedgerError.
 */
export class Outbox {
  readonly #transactions: LedgerDatabase;
  readonly #fanOut: FanOut;
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #listeners = new Set<() => void>();
  #hasNews = false;

  constructor(transactions: LedgerDatabase, fanOut: FanOut) {
    this.#transactions = transactions;
    this.#fanOut = fanOut;
    this.#sql = prepareStatements(transactions.db);
    transactions.onEnd((committed) => this.#announce(committed));
  }

  /** The sequence number of the newest event; 0 if there never was one. */
  newestSeq(): number {
    return Number(this.#transactions.read(() => this.#sql.newest.get()) ?? 0);
  }

  /** Events with numbers up to this one may be missing: they were pruned, or a backup was restored. 0: none is. */
  missingThrough(): number {
    return Number(this.#transactions.read(() => this.#sql.missingThrough.get()) ?? 0);
  }

  /** The next events after `seq`, oldest first, at most `limit`; empty only if there is nothing newer. */
  after(seq: number, limit: number): (EventRecord | UnreadableEvent)[] {
    return this.#transactions.read(() => {
      const events: (EventRecord | UnreadableEvent)[] = [];
      let chars = 0;
      for (const row of this.#sql.after.iterate({ seq, limit }) as Iterable<EventRow>) {
        events.push(toEventRecord(row));
        chars += row.answer?.length ?? 0;
        if (chars > MAX_PAGE_CHARS) break;
      }
      return events;
    });
  }

  /** Calls `listener` after every commit that added events, until the function it gives back is called. */
  onAppended(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Inside a transaction: an event about a submission whose newest change is in its history already. */
  addSubmissionEvent(type: SubmissionEventType, row: SubmissionRow, at: number): void {
    const { upstream, id: submission, version } = row;
    const seq = this.#add({ type, at, upstream, submission, version });
    const { submission_id: submissionId, metadata, callback_url: callbackUrl } = row;
    this.#fanOut.add({ seq, type, at, submissionId, metadata, callbackUrl });
  }

  /** Inside a transaction. */
  addUpstreamEvent(type: UpstreamEventType, upstream: string, at: number): void {
    this.#fanOut.add({ seq: this.#add({ type, at, upstream }), type, at });
  }

  /** Inside a transaction. */
  addAlertEvent(type: AlertEventType, alert: Alert, at: number): void {
    this.#fanOut.add({ seq: this.#add({ type, at, detail: JSON.stringify(alert) }), type, at });
  }

  /** Inside a transaction: an event for one webhook only. Gives back the number of its delivery. */
  addTestEvent(webhookId: string, at: number): number {
    const type = TEST_EVENT_TYPE;
    const seq = this.#add({ type, at, detail: JSON.stringify({ webhookId }) });
    return this.#fanOut.addForWebhook({ seq, type, at }, webhookId);
  }

  #add(added: Added): number {
    const { type, at, upstream, submission, version, detail } = { ...NOTHING, ...added };
    const about = [upstream, submission, submission, version, detail];
    const { lastInsertRowid } = this.#sql.add.run(newEventId(), type, at, ...about);
    this.#hasNews = true;
    return Number(lastInsertRowid);
  }

  #announce(committed: boolean): void {
    const isNews = this.#hasNews && committed;
    this.#hasNews = false;
    if (isNews) for (const listener of this.#listeners) listener();
  }
}

/** Random rather than counted: after a restored backup, a counted id would name another event. */
function newEventId(): string {
  return `evt_${randomUUID().replaceAll('-', '')}`;
}

function prepareStatements(db: Database.Database) {
  return {
    newest: db
      .prepare(`
        -- The newest number ever given, even if its row is gone by now.
        SELECT seq FROM sqlite_sequence WHERE name = 'outbox'`)
      .pluck(),
    missingThrough: db.prepare(MISSING_THROUGH).pluck(),
    after: db.prepare(`
      -- The next events, with what each tells of as it was then.
      SELECT ${EVENT_COLUMNS} FROM outbox o ${EVENT_JOINS} WHERE o.seq > @seq ORDER BY o.seq LIMIT @limit`),
    add: db.prepare(`
      -- One event to be told, with the row of history that shows the submission as it is now.
      INSERT INTO outbox (id, type, at, upstream, submission, history_seq, detail)
      VALUES (?, ?, ?, ?, ?, (SELECT seq FROM history WHERE submission = ? AND version = ?), ?)`),
  };
}
