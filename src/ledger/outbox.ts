import { randomUUID } from 'node:crypto';
import type Database from 'better-sqlite3';
import type { EventRecord } from '../monitor/event-body.ts';
import { SubmissionEventType, type UpstreamEventType } from '../monitor/events.ts';
import { Status } from '../monitor/submission.ts';
import { guarded } from './errors.ts';
import type { SubmissionRow } from './rows.ts';

type EventRow = { seq: number; id: string; at: number; upstream: string } & (
  | ({ type: SubmissionEventType; previous_status: Status | null } & Pick<
      SubmissionRow,
      | 'submission_id'
      | 'status'
      | 'tracked_at'
      | 'finalized_at'
      | 'deadline_at'
      | 'metadata'
      | 'upstream_state'
      | 'error'
      | 'answer'
    >)
  | { type: UpstreamEventType; submission_id: null }
);

/** A page ends early once it holds this much of what the upstream said: an answer may be a megabyte. */
const MAX_PAGE_CHARS = 256 * 1024;

/**
 * The log of what is told to others. An event is read as it was at its moment: its row of history never changes, and of
 * the submission itself only what was fixed when tracking began is taken. Throws LedgerError.
 */
export class Outbox {
  readonly #file: string;
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #listeners = new Set<() => void>();
  #hasNews = false;

  constructor(db: Database.Database, file: string) {
    this.#file = file;
    this.#sql = prepareStatements(db);
  }

  /** The sequence number of the newest event; 0 if there never was one. */
  newestSeq(): number {
    return Number(guarded(this.#file, () => this.#sql.newest.get()) ?? 0);
  }

  /** The next events after `seq`, oldest first, at most `limit`; empty only if there is nothing newer. */
  after(seq: number, limit: number): EventRecord[] {
    return guarded(this.#file, () => {
      const events: EventRecord[] = [];
      let chars = 0;
      for (const row of this.#sql.after.iterate({ seq, limit }) as Iterable<EventRow>) {
        events.push(toEventRecord(row));
        if (row.submission_id !== null) chars += row.answer?.length ?? 0;
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
    this.#sql.add.run({ id: newEventId(), type, at, upstream, submission, version });
    this.#hasNews = true;
  }

  /** Inside a transaction. */
  addUpstreamEvent(type: UpstreamEventType, upstream: string, at: number): void {
    this.#sql.add.run({ id: newEventId(), type, at, upstream, submission: null, version: null });
    this.#hasNews = true;
  }

  /** After a commit. One that was rolled back may have left news behind: then there is a needless look, no more. */
  announce(): void {
    if (!this.#hasNews) return;
    this.#hasNews = false;
    for (const listener of this.#listeners) listener();
  }
}

/** Random rather than counted: after a restored backup, a counted id would name another event. */
function newEventId(): string {
  return `evt_${randomUUID().replaceAll('-', '')}`;
}

function toEventRecord(row: EventRow): EventRecord {
  const { seq, id, at, upstream } = row;
  if (row.submission_id === null) return { seq, id, at, type: row.type, upstream };
  const { type, status } = row;
  return {
    seq,
    id,
    at,
    type,
    // To be stuck is no change: the row of history is the one that was the newest then.
    previousStatus: type === SubmissionEventType.stuck ? status : (row.previous_status ?? status),
    submission: {
      submissionId: row.submission_id,
      upstream,
      status,
      upstreamState: row.upstream_state,
      error: row.error,
      answer: row.answer,
      trackedAt: row.tracked_at,
      // It is set once, by the change that made it finalized.
      finalizedAt: status === Status.finalized ? row.finalized_at : null,
      deadlineAt: row.deadline_at,
      metadata: row.metadata === null ? null : JSON.parse(row.metadata),
    },
  };
}

function prepareStatements(db: Database.Database) {
  return {
    newest: db
      .prepare(`
        -- The newest number ever given, even if its row is gone by now.
        SELECT seq FROM sqlite_sequence WHERE name = 'outbox'`)
      .pluck(),
    after: db.prepare(`
      -- The next events, with what each tells of as it was then.
      SELECT o.seq, o.id, o.type, o.at, o.upstream,
             s.submission_id, s.tracked_at, s.finalized_at, s.deadline_at, s.metadata,
             h.status, h.previous_status, h.upstream_state, h.error, h.answer
      FROM outbox o LEFT JOIN submissions s ON s.id = o.submission LEFT JOIN history h ON h.seq = o.history_seq
      WHERE o.seq > @seq ORDER BY o.seq LIMIT @limit`),
    add: db.prepare(`
      -- One event to be told, with the row of history that shows the submission as it is now.
      INSERT INTO outbox (id, type, at, upstream, submission, history_seq)
      VALUES (@id, @type, @at, @upstream, @submission,
              (SELECT seq FROM history WHERE submission = @submission AND version = @version))`),
  };
}
