import type Database from 'better-sqlite3';
import { SubmissionEventType as Event } from '../../domain/notifications/events.ts';
import { isFinal, Status, type Submission } from '../../domain/submission.ts';
import type { TransitionResult } from '../../domain/transition.ts';
import type { Outbox } from '../events/outbox.ts';
import type { StatusCounts } from './status-counts.ts';
import type { SubmissionRow } from './submission-rows.ts';

/** Writes what a transition decided: the row, its history, its events. Always inside a transaction of its caller. */
export class SubmissionWriter {
  readonly #countPoll: Database.Statement;
  readonly #move: Database.Statement;
  readonly #update: Database.Statement;
  readonly #insertHistory: Database.Statement;
  readonly #outbox: Outbox;
  readonly #counts: StatusCounts;

  constructor(db: Database.Database, outbox: Outbox, counts: StatusCounts) {
    this.#outbox = outbox;
    this.#counts = counts;
    // What an index or a trigger looks at is written anew wherever it is named, also with the value that it has.
    this.#countPoll = db.prepare(`
      -- A submission after an answer without news, as most are.
      UPDATE submissions SET polls = ?, polled_at = ?, unanswered_since = ?, not_found_ms = ? WHERE id = ?`);
    this.#move = db.prepare(`
      -- A submission after a change that leaves it open.
      UPDATE submissions SET status = ?, version = ?, polls = ?, polled_at = ?, unanswered_since = ? WHERE id = ?`);
    this.#update = db.prepare(`
      -- A submission after any other change.
      UPDATE submissions
      SET status = @status, watched = @watched, stuck = @stuck, version = @version, polls = @polls,
          polled_at = @polledAt, unanswered_since = @noResponseSince, not_found_ms = @notFoundMs, finalized_at = @finalizedAt,
          ended_at = @endedAt
      WHERE id = @id`);
    this.#insertHistory = db.prepare(`
      -- One change.
      INSERT INTO history (submission, version, at, status, previous_status, upstream_state, error, answer)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)`);
  }

  /**
   * Applies an outcome to a submission as it was read in this transaction: its row, and what that says. `polls`: requests it
   * cost; `polledAt`: the newest one's answer.
   */
  applyOutcome(
    { row, before }: { row: SubmissionRow; before: Submission },
    outcome: TransitionResult,
    input: { at: number; polls: number; polledAt: number | null },
  ): Submission {
    const { change } = outcome;
    const after: Submission = {
      ...before,
      watched: outcome.watched,
      stuck: before.stuck || outcome.becameStuck,
      polls: before.polls + input.polls,
      polledAt: input.polledAt,
      noResponseSince: outcome.noResponseSince,
      notFoundMs: outcome.notFoundMs,
    };
    if (change) {
      after.status = change.status;
      after.version += 1;
      after.upstreamState = change.upstreamState;
      after.error = change.error;
      after.envelope = change.envelope;
      if (change.status === Status.finalized) after.finalizedAt ??= input.at;
    }
    const endedAt = row.ended_at ?? (change && isFinal(change.status) ? input.at : null);
    const { status, version, polls, polledAt, noResponseSince, notFoundMs } = after;
    const stays = after.watched === before.watched && after.stuck === before.stuck && endedAt === row.ended_at;
    if (!stays) this.#writeAll(row.id, after, endedAt);
    else if (change) this.#move.run(status, version, polls, polledAt, noResponseSince, row.id);
    else this.#countPoll.run(polls, polledAt, noResponseSince, notFoundMs, row.id);
    this.#counts.moved(before.status, status);
    if (change) this.#history(row.id, after, before.status, input.at);
    if (change?.event) this.#outbox.addSubmissionEvent(change.event, { ...row, version }, input.at);
    if (outcome.becameStuck) this.#outbox.addSubmissionEvent(Event.stuck, { ...row, version }, input.at);
    return after;
  }

  /** The first row of a submission's history. */
  insertFirstHistory(id: number, submission: Submission): void {
    this.#counts.moved(null, submission.status);
    this.#history(id, submission, null, submission.trackedAt);
  }

  #writeAll(id: number, submission: Submission, endedAt: number | null): void {
    const { status, version, polls, polledAt, noResponseSince, notFoundMs, finalizedAt } = submission;
    const watched = submission.watched ? 1 : 0;
    const stuck = submission.stuck ? 1 : 0;
    const counted = { version, polls, polledAt, noResponseSince, notFoundMs };
    this.#update.run({ id, status, watched, stuck, ...counted, finalizedAt, endedAt });
  }

  #history(id: number, submission: Submission, previousStatus: Status | null, at: number): void {
    const { version, status, upstreamState, error, envelope } = submission;
    this.#insertHistory.run(id, version, at, status, previousStatus, upstreamState, error, envelope);
  }
}
