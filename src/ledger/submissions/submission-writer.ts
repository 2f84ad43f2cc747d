import { isSameJson } from '../../domain/json.ts';
import { SubmissionEventType as Event, type SubmissionEventType } from '../../domain/notifications/events.ts';
import { isFinal, type OptionChanges, Status, type Submission, type TrackRequest } from '../../domain/submission.ts';
import { changesBetween, limitsFrom } from '../../domain/tracking/option-changes.ts';
import type { TransitionResult } from '../../domain/transition.ts';
import type { Outbox } from '../events/outbox.ts';
import type { CommittedChanges, LedgerDatabase } from '../file/ledger-database.ts';
import type { AddedMetadata } from './metadata-index.ts';
import type { StatusCounts } from './status-counts.ts';
import type { SubmissionRow } from './submission-rows.ts';

/** Writes submissions with their history and events. Every method must be called inside a transaction. */
export class SubmissionWriter {
  readonly #db: LedgerDatabase;
  readonly #outbox: Outbox;
  readonly #counts: StatusCounts;
  readonly #changed: CommittedChanges<string>;

  /** `changed`: gets the ids of changed submissions. */
  constructor(
    database: LedgerDatabase,
    { outbox, counts, changed }: { outbox: Outbox; counts: StatusCounts; changed: CommittedChanges<string> },
  ) {
    this.#db = database;
    this.#outbox = outbox;
    this.#counts = counts;
    this.#changed = changed;
  }

  /**
   * Inserts a newly tracked submission and its first row of history. Returns undefined if the id is tracked already.
   * `outageMs`: the reading of the upstream's outage clock, in milliseconds. `added`: gets its metadata, for their index.
   */
  insert(
    request: TrackRequest,
    { now, outageMs, added }: { now: number; outageMs: number; added: AddedMetadata[] },
  ): Submission | undefined {
    const { submissionId, upstream, metadata, callbackUrl, trackedAt = now, credential = null, traceparent } = request;
    const { deadlineAt, graceEndsAt, stuckAt } = limitsFrom(request, now);
    const text = metadata && JSON.stringify(metadata);
    const { changes, lastInsertRowid } = this.#db.run`
      INSERT INTO submissions (submission_id, upstream, status, watched, version, tracked_at, deadline_at,
                               grace_ends_at, stuck_at, outage_ms_before, metadata, callback_url, credential)
      VALUES (${submissionId}, ${upstream}, 'tracking', 1, 1, ${trackedAt}, ${deadlineAt}, ${graceEndsAt}, ${stuckAt},
              ${outageMs}, ${text}, ${callbackUrl}, ${credential})
      ON CONFLICT (submission_id) DO NOTHING`;
    if (changes === 0) return undefined;
    const id = Number(lastInsertRowid);
    if (metadata && text !== null) added.push({ id, metadata, text });
    if (traceparent !== undefined) this.writeTrace(id, traceparent);
    const submission: Submission = {
      submissionId,
      upstream,
      deadlineAt,
      graceEndsAt,
      stuckAt,
      metadata,
      callbackUrl,
      status: Status.tracking,
      watched: true,
      stuck: false,
      version: 1,
      polls: 0,
      polledAt: null,
      noResponseSince: null,
      notFoundMs: null,
      notFoundSince: null,
      trackedAt,
      finalizedAt: null,
      outageMsBefore: outageMs,
      deadlineOutageMsBefore: null,
      upstreamState: null,
      error: null,
      envelope: null,
    };
    this.#counts.moved(null, submission.status);
    this.#insertHistory(id, submission, { previousStatus: null, at: now });
    return submission;
  }

  /** Replaces the stored trace context of a submission; undefined: it has none any more. */
  writeTrace(submission: number, traceparent: string | undefined): void {
    if (traceparent === undefined) this.#db.run`DELETE FROM submission_traces WHERE submission = ${submission}`;
    else
      this.#db.run`
        INSERT OR REPLACE INTO submission_traces (submission, traceparent) VALUES (${submission}, ${traceparent})`;
  }

  /**
   * Writes the result of a transition and returns the new state. `row` and `before` are the submission as read in this
   * transaction. `polls`: requests to add; `polledAt`: time of the newest response; `lagMs`: upper bound of the time since it
   * became final, if this transition finalizes it.
   */
  applyTransition(
    { row, before }: { row: SubmissionRow; before: Submission },
    result: TransitionResult,
    input: { at: number; polls: number; polledAt: number | null; lagMs?: number | null },
  ): Submission {
    const { change } = result;
    const after: Submission = {
      ...before,
      watched: result.watched,
      stuck: before.stuck || result.becameStuck,
      polls: before.polls + input.polls,
      polledAt: input.polledAt,
      noResponseSince: result.noResponseSince,
      notFoundMs: result.notFoundMs,
      notFoundSince: result.notFoundSince,
    };
    if (change) {
      after.status = change.status;
      after.version += 1;
      after.upstreamState = change.upstreamState;
      after.error = change.error;
      after.envelope = change.envelope;
      if (change.status === Status.finalized) after.finalizedAt ??= input.at;
    }
    const { status, version } = after;
    this.#update(row, { before, after }, row.endedAt ?? (change && isFinal(status) ? input.at : null));
    this.#counts.moved(before.status, status);
    const isNewlyFinal = status === Status.finalized && before.status !== status;
    const lagMs = isNewlyFinal ? (input.lagMs ?? null) : null;
    if (change) this.#insertHistory(row.id, after, { previousStatus: before.status, at: input.at, lagMs });
    if (change?.event) this.#outbox.addSubmissionEvent(change.event, { ...row, version }, input.at);
    if (result.becameStuck) this.#outbox.addSubmissionEvent(Event.stuck, { ...row, version }, input.at);
    return after;
  }

  /**
   * Writes what a request of a client changed, and returns `after` with its new version. The history names the changed options.
   * `row` and `before` are the submission as read in this transaction.
   */
  applyRequest(
    { row, before }: { row: SubmissionRow; before: Submission },
    after: Submission,
    { at, event }: { at: number; event: SubmissionEventType | null },
  ): Submission {
    const version = before.version + 1;
    // Unchanged metadata keep their text, which may be damaged.
    const isSame = isSameJson(before.metadata, after.metadata);
    const metadata = isSame ? row.metadata : after.metadata && JSON.stringify(after.metadata);
    const { status, callbackUrl } = after;
    this.#db.run`
      UPDATE submissions
      SET status = ${status}, watched = ${after.watched ? 1 : 0}, stuck = ${after.stuck ? 1 : 0}, version = ${version},
          polled_at = ${after.polledAt}, unanswered_since = ${after.noResponseSince}, not_found_ms = ${after.notFoundMs},
          not_found_since = ${after.notFoundSince}, ended_at = ${isFinal(status) ? row.endedAt : null},
          tracked_at = ${after.trackedAt}, deadline_at = ${after.deadlineAt}, grace_ends_at = ${after.graceEndsAt},
          stuck_at = ${after.stuckAt}, outage_ms_before = ${after.outageMsBefore},
          deadline_outage_ms_before = ${after.deadlineOutageMsBefore}, metadata = ${metadata}, callback_url = ${callbackUrl}
      WHERE id = ${row.id}`;
    this.#counts.moved(before.status, status);
    const written = { ...after, version };
    this.#insertHistory(row.id, written, {
      previousStatus: before.status,
      at,
      changes: changesBetween(before, after),
    });
    if (callbackUrl !== row.callbackUrl) this.#outbox.moveCallbacks(row, callbackUrl, at);
    if (event) this.#outbox.addSubmissionEvent(event, { ...row, version, metadata, callbackUrl }, at);
    return written;
  }

  /**
   * SQLite rewrites the index entries of every column that an UPDATE names, so the frequent updates name few of them. That saves
   * 8 of the 50 µs of a poll (row polls-local).
   */
  #update(row: SubmissionRow, { before, after }: Record<'before' | 'after', Submission>, endedAt: number | null): void {
    const { status, version, polls, polledAt, noResponseSince, notFoundMs, notFoundSince, finalizedAt } = after;
    if (after.watched !== before.watched || after.stuck !== before.stuck || endedAt !== row.endedAt)
      this.#db.run`
        UPDATE submissions
        SET status = ${status}, watched = ${after.watched ? 1 : 0}, stuck = ${after.stuck ? 1 : 0},
            version = ${version}, polls = ${polls}, polled_at = ${polledAt}, unanswered_since = ${noResponseSince},
            not_found_ms = ${notFoundMs}, not_found_since = ${notFoundSince}, finalized_at = ${finalizedAt},
            ended_at = ${endedAt}
        WHERE id = ${row.id}`;
    else if (version !== before.version)
      this.#db.run`
        UPDATE submissions
        SET status = ${status}, version = ${version}, polls = ${polls}, polled_at = ${polledAt},
            unanswered_since = ${noResponseSince}, not_found_since = ${notFoundSince}
        WHERE id = ${row.id}`;
    else
      this.#db.run`
        UPDATE submissions
        SET polls = ${polls}, polled_at = ${polledAt}, unanswered_since = ${noResponseSince}, not_found_ms = ${notFoundMs},
            not_found_since = ${notFoundSince}
        WHERE id = ${row.id}`;
  }

  #insertHistory(
    id: number,
    submission: Submission,
    {
      previousStatus,
      at,
      lagMs = null,
      changes = null,
    }: { previousStatus: Status | null; at: number; lagMs?: number | null; changes?: OptionChanges | null },
  ): void {
    const { submissionId, version, status, upstreamState, error, envelope, polls } = submission;
    this.#changed.add(submissionId);
    this.#db.run`
      INSERT INTO history (submission, version, at, status, previous_status, upstream_state, error, answer, changes, polls,
                           lag_ms)
      VALUES (${id}, ${version}, ${at}, ${status}, ${previousStatus}, ${upstreamState}, ${error}, ${envelope},
              ${changes && JSON.stringify(changes)}, ${polls}, ${lagMs})`;
  }
}
