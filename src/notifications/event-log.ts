import type { CommittedChanges, LedgerDatabase } from '../ledger/ledger-database.ts';
import type { DamagedEvent, EventRecord } from './event-body.ts';
import { EVENT_COLUMNS, EVENT_JOINS, type EventRow, toEventRecord } from './event-rows.ts';

/**
 * A page of events ends early once it holds this much text of upstream responses, which may be a
 * megabyte each.
 */
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

  /**
   * Returns the sequence number of the newest event on the disk, even if that was pruned; 0 if
   * there has been none.
   */
  newestSeq(): number {
    const newest = Number(
      this.#db.value("SELECT seq FROM sqlite_sequence WHERE name = 'outbox'") ?? 0,
    );
    return Math.min(newest, this.#lastDurableSeq());
  }

  /**
   * Returns the sequence number up to which events may be missing, after pruning or a restored
   * backup; 0 if none is.
   */
  missingThrough(): number {
    const sql = "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'events_missing_through'";
    return Number(this.#db.value(sql) ?? 0);
  }

  /**
   * Returns the events after `seq`, oldest first, at most `limit`; empty only if there is no newer
   * event. Events that are not on the disk yet are omitted, because after a power failure other
   * events could get their numbers.
   */
  after(seq: number, limit: number): (EventRecord | DamagedEvent)[] {
    const events: (EventRecord | DamagedEvent)[] = [];
    let chars = 0;
    for (const row of this.#db.iterate<EventRow>(AFTER, seq, this.#lastDurableSeq(), limit)) {
      events.push(toEventRecord(row));
      chars += row.envelope?.length ?? 0;
      if (chars > MAX_PAGE_CHARS) break;
    }
    return events;
  }

  /**
   * Calls `listener` once the events that a commit added are on the disk. Returns a function that
   * removes the listener.
   */
  onAppended(listener: () => void): () => void {
    return this.#added.onDurable(() => listener());
  }

  #lastDurableSeq(): number {
    const firstUnsynced = this.#added.unsynced[0]?.[0];
    return firstUnsynced === undefined ? Number.MAX_SAFE_INTEGER : firstUnsynced - 1;
  }
}

const AFTER = `SELECT ${EVENT_COLUMNS} FROM outbox o ${EVENT_JOINS} WHERE o.seq > ? AND o.seq <= ? ORDER BY o.seq LIMIT ? + 0`;

/**
 * All events in commit order, for the live feed: the public methods of the log, which tests
 * replace.
 */
export type FeedLog = Pick<EventLog, keyof EventLog>;
