import { randomUUID } from 'node:crypto';
import type Database from 'better-sqlite3';
import { SubmissionEventType as Event, type SubmissionEventType, type UpstreamEventType } from '../monitor/events.ts';
import { Status, type Submission } from '../monitor/submission.ts';
import type { Outcome } from '../monitor/transition.ts';
import { type SubmissionRow, toSubmission } from './rows.ts';

/** Writes what a transition decided: the row, its history, its events. Always inside a transaction of its caller. */
export class Writer {
  readonly #updateSubmission: Database.Statement;
  readonly #insertHistory: Database.Statement;
  readonly #insertOutbox: Database.Statement;

  constructor(db: Database.Database) {
    this.#updateSubmission = db.prepare(`
      -- A submission after an answer or a cancel.
      UPDATE submissions
      SET status = @status, watched = @watched, stuck = @stuck, version = @version, polls = @polls,
          polled_at = @polledAt, finalized_at = @finalizedAt
      WHERE id = @id`);
    this.#insertHistory = db.prepare(`
      -- One change.
      INSERT INTO history (submission, version, at, status, previous_status, upstream_state, error, answer)
      VALUES (@submission, @version, @at, @status, @previousStatus, @upstreamState, @error, @answer)`);
    this.#insertOutbox = db.prepare(`
      -- One event to be told.
      INSERT INTO outbox (id, type, at, upstream, submission, history_seq)
      VALUES (@id, @type, @at, @upstream, @submission, @historySeq)`);
  }

  /** Applies an outcome to a row as it was read in this transaction. `polls`: requests it cost. */
  apply(row: SubmissionRow, outcome: Outcome, input: { at: number; polls: number }): Submission {
    const { change } = outcome;
    const after: SubmissionRow = {
      ...row,
      ...(change && {
        status: change.status,
        version: row.version + 1,
        upstream_state: change.upstreamState,
        error: change.error,
        answer: change.answer,
      }),
      watched: outcome.watched ? 1 : 0,
      stuck: row.stuck || outcome.becameStuck ? 1 : 0,
      polls: row.polls + input.polls,
      polled_at: input.polls > 0 ? Math.max(input.at, row.polled_at ?? 0) : row.polled_at,
      finalized_at: row.finalized_at ?? (change?.status === Status.finalized ? input.at : null),
    };
    this.#updateSubmission.run({
      id: after.id,
      status: after.status,
      watched: after.watched,
      stuck: after.stuck,
      version: after.version,
      polls: after.polls,
      polledAt: after.polled_at,
      finalizedAt: after.finalized_at,
    });
    if (change) {
      const historySeq = this.#history(after, row.status, input.at);
      if (change.event) this.#event(change.event, after, historySeq, input.at);
    }
    if (outcome.becameStuck) this.#event(Event.stuck, after, null, input.at);
    return toSubmission(after);
  }

  /** The first row of a submission's history. */
  begin(row: SubmissionRow): void {
    this.#history(row, null, row.tracked_at);
  }

  upstreamEvent(type: UpstreamEventType, upstream: string, at: number): void {
    this.#insertOutbox.run({ id: newEventId(), type, at, upstream, submission: null, historySeq: null });
  }

  #history(row: SubmissionRow, previousStatus: Status | null, at: number): number | bigint {
    return this.#insertHistory.run({
      submission: row.id,
      version: row.version,
      at,
      status: row.status,
      previousStatus,
      upstreamState: row.upstream_state,
      error: row.error,
      answer: row.answer,
    }).lastInsertRowid;
  }

  #event(type: SubmissionEventType, row: SubmissionRow, historySeq: number | bigint | null, at: number): void {
    this.#insertOutbox.run({ id: newEventId(), type, at, upstream: row.upstream, submission: row.id, historySeq });
  }
}

/** Random rather than counted: after a restored backup, a counted id would name another event. */
function newEventId(): string {
  return `evt_${randomUUID().replaceAll('-', '')}`;
}
