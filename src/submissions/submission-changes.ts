import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { isSameJson } from '../lib/json.ts';
import type { SubmissionEventType } from './event-types.ts';
import type { History } from './history.ts';
import {
  changedOptions,
  changesBetween,
  limitsFrom,
  type OptionsPatch,
  TIME_LIMITS,
  unappliedOptions,
  withOptions,
} from './option-changes.ts';
import type { FinalChange, OnFinal, TrackedSubmission, UpdateResult } from './ports.ts';
import type { StatusCounts } from './status-counts.ts';
import { isFinal, type Submission, type TrackRequest } from './submission.ts';
import { SubmissionQueries, type SubmissionRow, toSubmission } from './submission-queries.ts';
import { contextWithoutLimits, transition } from './transition.ts';
import { UpstreamStore } from './upstream.ts';

/** Adds the events of a submission and their deliveries, in the transaction of the change. */
export type SubmissionEvents = {
  /** Must be called after the change was added to the history. */
  addSubmissionEvent(type: SubmissionEventType, row: SubmissionRow, at: number): void;
  /** Directs the waiting and dead callbacks of a submission to its new URL; null discards them. */
  moveCallbacks(
    row: Pick<SubmissionRow, 'id' | 'callbackUrl'>,
    to: string | null,
    at: number,
  ): void;
};

/** A submission after a request to cancel it, and whether that changed it. */
type CancelResult = { submission: Submission; isChanged: boolean };

export type SubmissionDeps = {
  outbox: SubmissionEvents;
  counts: StatusCounts;
  history: History;
  onFinal: readonly OnFinal[];
};

/**
 * The requests of clients for known submissions: retrack, update, cancel. Every method must be
 * called inside a transaction.
 */
export class SubmissionChanges {
  readonly #db: LedgerDatabase;
  readonly #outbox: SubmissionEvents;
  readonly #counts: StatusCounts;
  readonly #history: History;
  readonly #onFinal: readonly OnFinal[];
  readonly #queries: SubmissionQueries;
  readonly #upstreams: UpstreamStore;

  constructor(database: LedgerDatabase, { outbox, counts, history, onFinal }: SubmissionDeps) {
    this.#db = database;
    this.#outbox = outbox;
    this.#counts = counts;
    this.#history = history;
    this.#onFinal = onFinal;
    this.#queries = new SubmissionQueries(database);
    this.#upstreams = new UpstreamStore(database);
  }

  /**
   * Tracks an ended submission again if the request demands it; changes nothing otherwise. `row`:
   * as read in this transaction. `outageMs`: the reading of the upstream's outage clock, in
   * milliseconds.
   */
  retrack(
    row: SubmissionRow,
    request: TrackRequest,
    { now, outageMs }: { now: number; outageMs: number },
  ): TrackedSubmission {
    const before = toSubmission(row);
    const { change, ...result } = transition(
      before,
      { kind: 'retrack', at: now },
      contextWithoutLimits(now),
    );
    if (!request.retrack || !change) {
      const effect = isFinal(before.status) ? 'already_final' : 'already_tracked';
      return { submission: before, effect, notApplied: unappliedOptions(request, before, now) };
    }
    const { event, ...state } = change;
    const { named = [], traceparent } = request;
    const after: Submission = {
      ...before,
      ...state,
      watched: result.watched,
      stuck: false,
      noResponseSince: result.noResponseSince,
      notFoundMs: result.notFoundMs,
      notFoundSince: result.notFoundSince,
      polledAt: null,
      trackedAt: request.trackedAt ?? now,
      ...limitsFrom(request, now),
      outageMsBefore: outageMs,
      deadlineOutageMsBefore: null,
      ...(named.includes('metadata') && { metadata: request.metadata }),
      ...(named.includes('callback_url') && { callbackUrl: request.callbackUrl }),
    };
    const submission = this.#write({ row, before }, after, { at: now, event });
    if (traceparent === undefined)
      this.#db.run`DELETE FROM submission_traces WHERE submission = ${row.id}`;
    else
      this.#db.run`
        INSERT OR REPLACE INTO submission_traces (submission, traceparent) VALUES (${row.id}, ${traceparent})`;
    return { submission, effect: 'retracked', notApplied: [] };
  }

  /** Changes options of a submission; undefined if it was never tracked. */
  update(submissionId: string, patch: OptionsPatch, now: number): UpdateResult | undefined {
    const row = this.#queries.findRow(submissionId);
    if (!row) return undefined;
    const before = toSubmission(row);
    if (isFinal(before.status) && TIME_LIMITS.some((name) => patch[name] !== undefined))
      return { kind: 'final', submission: before };
    if (patch.deadlineAt !== undefined && patch.deadlineAt <= now) return { kind: 'late' };
    const outageMs = this.#upstreams.outageMs(before.upstream, now);
    const after = withOptions(before, patch, { now, outageMs });
    const changes = changesBetween(before, after);
    if (changes === null) return { kind: 'updated', submission: before, changed: [] };
    const submission = this.#write({ row, before }, after, { at: now, event: null });
    return { kind: 'updated', submission, changed: changedOptions(changes) };
  }

  /** Cancels submissions. Undefined in the result: the id was never tracked. */
  cancel(submissionIds: readonly string[], now: number): (CancelResult | undefined)[] {
    const finals: FinalChange[] = [];
    const results = submissionIds.map((id) => this.#cancel(id, now, finals));
    for (const count of finals.length > 0 ? this.#onFinal : []) count(finals);
    return results;
  }

  /** `finals`: gets the cancellation if it changes the submission. */
  #cancel(submissionId: string, now: number, finals: FinalChange[]): CancelResult | undefined {
    const row = this.#queries.findRow(submissionId);
    if (!row) return undefined;
    const before = toSubmission(row);
    const result = transition(before, { kind: 'cancel', at: now }, contextWithoutLimits(now));
    if (!result.change) return { submission: before, isChanged: false };
    const { event, ...state } = result.change;
    const { watched, noResponseSince } = result;
    const after = { ...before, ...state, watched, noResponseSince, version: before.version + 1 };
    const { status, version } = after;
    this.#db.run`
      UPDATE submissions
      SET status = ${status}, watched = ${watched ? 1 : 0}, version = ${version}, no_response_since = ${noResponseSince},
          ended_at = ${row.endedAt ?? now}
      WHERE id = ${row.id}`;
    this.#counts.moved(before.status, status);
    this.#history.add(row.id, after, { previousStatus: before.status, at: now });
    if (event) this.#outbox.addSubmissionEvent(event, { ...row, version }, now);
    finals.push({ id: row.id, before, after, at: now, lagMs: null });
    return { submission: after, isChanged: true };
  }

  /**
   * Writes the state and the options that a request changed, and returns `after` with its new
   * version. The history names the changed options. `row` and `before` are the submission as read
   * in this transaction.
   */
  #write(
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
          polled_at = ${after.polledAt}, no_response_since = ${after.noResponseSince}, not_found_ms = ${after.notFoundMs},
          not_found_since = ${after.notFoundSince}, ended_at = ${isFinal(status) ? row.endedAt : null},
          tracked_at = ${after.trackedAt}, deadline_at = ${after.deadlineAt}, grace_ends_at = ${after.graceEndsAt},
          stuck_at = ${after.stuckAt}, outage_ms_before = ${after.outageMsBefore},
          deadline_outage_ms_before = ${after.deadlineOutageMsBefore}, metadata = ${metadata}, callback_url = ${callbackUrl}
      WHERE id = ${row.id}`;
    this.#counts.moved(before.status, status);
    const written = { ...after, version };
    const changes = changesBetween(before, after);
    this.#history.add(row.id, written, { previousStatus: before.status, at, changes });
    if (callbackUrl !== row.callbackUrl) this.#outbox.moveCallbacks(row, callbackUrl, at);
    if (event)
      this.#outbox.addSubmissionEvent(event, { ...row, version, metadata, callbackUrl }, at);
    return written;
  }
}
