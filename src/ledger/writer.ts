import type Database from 'better-sqlite3';
import { SubmissionEventType as Event } from '../monitor/events.ts';
import { isFinal, Status, type Submission } from '../monitor/submission.ts';
import type { Outcome } from '../monitor/transition.ts';
import type { Outbox } from './outbox.ts';
import { type SubmissionRow, toSubmission } from './rows.ts';
import type { StatusCounts } from './status-counts.ts';

/** Writes what a transition decided: the row, its history, its events. Always inside a transaction of its caller. */
export class Writer {
  readonly #countPoll: Database.Statement;
  readonly #updateSubmission: Database.Statement;
  readonly #insertHistory: Database.Statement;
  readonly #outbox: Outbox;
  readonly #counts: StatusCounts;

  constructor(db: Database.Database, outbox: Outbox, counts: StatusCounts) {
    this.#outbox = outbox;
    this.#counts = counts;
    this.#countPoll = db.prepare(`
      -- A submission after an answer without news, as most are: what an index or a trigger looks at is not touched.
      UPDATE submissions SET polls = ?, polled_at = ?, unanswered_since = ? WHERE id = ?`);
    this.#updateSubmission = db.prepare(`
      -- A submission after a change.
      UPDATE submissions
      SET status = @status, watched = @watched, stuck = @stuck, version = @version, polls = @polls,
          polled_at = @polledAt, unanswered_since = @unansweredSince, finalized_at = @finalizedAt,
          ended_at = @endedAt
      WHERE id = @id`);
    this.#insertHistory = db.prepare(`
      -- One change.
      INSERT INTO history (submission, version, at, status, previous_status, upstream_state, error, answer)
      VALUES (@submission, @version, @at, @status, @previousStatus, @upstreamState, @error, @answer)`);
  }

  /** Applies an outcome to a row as it was read in this transaction. `polls`: requests it cost; `polledAt`: the newest one's answer. */
  apply(
    row: SubmissionRow,
    outcome: Outcome,
    input: { at: number; polls: number; polledAt: number | null },
  ): Submission {
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
      polled_at: input.polledAt,
      unanswered_since: outcome.unansweredSince,
      finalized_at: row.finalized_at ?? (change?.status === Status.finalized ? input.at : null),
      ended_at: row.ended_at ?? (change && isFinal(change.status) ? input.at : null),
    };
    if (!change && after.watched === row.watched && after.stuck === row.stuck)
      this.#countPoll.run(after.polls, after.polled_at, after.unanswered_since, after.id);
    else this.#update(after);
    this.#counts.moved(row.status, after.status);
    if (change) this.#history(after, row.status, input.at);
    if (change?.event) this.#outbox.addSubmissionEvent(change.event, after, input.at);
    if (outcome.becameStuck) this.#outbox.addSubmissionEvent(Event.stuck, after, input.at);
    return toSubmission(after);
  }

  /** The first row of a submission's history. */
  begin(row: SubmissionRow): void {
    this.#counts.moved(null, row.status);
    this.#history(row, null, row.tracked_at);
  }

  #update(row: SubmissionRow): void {
    this.#updateSubmission.run({
      id: row.id,
      status: row.status,
      watched: row.watched,
      stuck: row.stuck,
      version: row.version,
      polls: row.polls,
      polledAt: row.polled_at,
      unansweredSince: row.unanswered_since,
      finalizedAt: row.finalized_at,
      endedAt: row.ended_at,
    });
  }

  #history(row: SubmissionRow, previousStatus: Status | null, at: number): void {
    this.#insertHistory.run({
      submission: row.id,
      version: row.version,
      at,
      status: row.status,
      previousStatus,
      upstreamState: row.upstream_state,
      error: row.error,
      answer: row.answer,
    });
  }
}
