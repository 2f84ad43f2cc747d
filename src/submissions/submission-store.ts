import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import type { Observation } from './classify.ts';
import { SubmissionEventType as Event } from './event-types.ts';
import type { History } from './history.ts';
import { limitsFrom } from './option-changes.ts';
import type {
  FinalChange,
  OnFinal,
  RecordedObservation,
  TrackedSubmission,
  TrackRefusal,
  TrackResult,
} from './ports.ts';
import { SEARCHABLE } from './search.ts';
import type { StatusCounts } from './status-counts.ts';
import { canRetrack, isFinal, Status, type Submission, type TrackRequest } from './submission.ts';
import type { SubmissionChanges, SubmissionDeps, SubmissionEvents } from './submission-changes.ts';
import {
  SubmissionQueries,
  type SubmissionRow,
  type SubmissionState,
  toSubmission,
} from './submission-queries.ts';
import { type TransitionContext, type TransitionResult, transition } from './transition.ts';
import { isSeen, UpstreamStore } from './upstream.ts';

/**
 * Adds the metadata of a new submission to the index by value: the values within SEARCHABLE as
 * text. Triggers maintain the index when metadata are changed or deleted.
 */
const INDEX_METADATA = `
  INSERT OR IGNORE INTO submission_metadata
  SELECT key, CASE type WHEN 'text' THEN value ELSE @text -> fullkey END, @id FROM json_each(@text)
  WHERE type NOT IN ('object', 'array') AND octet_length(key) BETWEEN 1 AND ${SEARCHABLE.nameBytes}
    AND (type <> 'text' OR octet_length(value) <= ${SEARCHABLE.valueBytes})
  LIMIT ${SEARCHABLE.names}`;

type StoreDeps = SubmissionDeps & {
  /** Tracks known submissions again. */
  changes: SubmissionChanges;
};

/**
 * Writes what is tracked and what is observed: the submission, its history and its events. Every
 * method must be called inside a transaction.
 */
export class SubmissionStore {
  readonly #db: LedgerDatabase;
  readonly #outbox: SubmissionEvents;
  readonly #counts: StatusCounts;
  readonly #history: History;
  readonly #onFinal: readonly OnFinal[];
  readonly #changes: SubmissionChanges;
  readonly #queries: SubmissionQueries;
  readonly #upstreams: UpstreamStore;

  constructor(database: LedgerDatabase, { outbox, counts, history, onFinal, changes }: StoreDeps) {
    this.#db = database;
    this.#outbox = outbox;
    this.#counts = counts;
    this.#history = history;
    this.#onFinal = onFinal;
    this.#changes = changes;
    this.#queries = new SubmissionQueries(database);
    this.#upstreams = new UpstreamStore(database);
  }

  /** Tracks all or none of the requests of each group. */
  track(groups: readonly (readonly TrackRequest[])[], now: number): TrackResult[] {
    const outages = new Map<string, number>();
    return groups.map((requests) => this.#trackGroup(requests, now, outages));
  }

  /** Returns why a group would be refused; undefined if it would be tracked. */
  refusalOf(requests: readonly TrackRequest[], now: number): TrackRefusal | undefined {
    const states = this.#queries.statesOf(requests.map(({ submissionId }) => submissionId));
    const known = requests.map(({ submissionId }) => states.get(submissionId));
    return this.#refusalOf(requests, known, now);
  }

  /** `known`: the states of the submissions of the group. */
  #refusalOf(
    requests: readonly TrackRequest[],
    known: readonly (SubmissionState | undefined)[],
    now: number,
  ): TrackRefusal | undefined {
    for (const [index, request] of requests.entries()) {
      const { submissionId, upstream, retrack, trackedAt = now } = request;
      const row = known[index];
      if (row && row.upstream !== upstream)
        return { kind: 'conflict', index, submission: this.#known(submissionId) };
      const begins = !row || (retrack && canRetrack(row.status));
      if (begins && limitsFrom(request, now).deadlineAt <= trackedAt)
        return { kind: 'late', index };
    }
    return undefined;
  }

  #known(submissionId: string): Submission {
    return toSubmission(this.#queries.findRow(submissionId) as SubmissionRow);
  }

  /** `outages`: the outage clock of each upstream, in ms. */
  #trackGroup(
    requests: readonly TrackRequest[],
    now: number,
    outages: Map<string, number>,
  ): TrackResult {
    const known = requests.map((request) => this.#queries.findRow(request.submissionId));
    const refusal = this.#refusalOf(requests, known, now);
    if (refusal) return refusal;
    const submissions = requests.map((request, index): TrackedSubmission => {
      const { submissionId, upstream } = request;
      const outageMs = outages.get(upstream) ?? this.#upstreams.outageMs(upstream, now);
      outages.set(upstream, outageMs);
      const inserted = known[index] ? undefined : this.#insert(request, now, outageMs);
      if (inserted) return { submission: inserted, effect: 'accepted', notApplied: [] };
      // The id may occur twice in one batch: then the first request has inserted it, or tracked it
      // again.
      const read = request.retrack ? undefined : known[index];
      const row = read ?? this.#queries.findRow(submissionId);
      if (row?.upstream !== upstream)
        throw new Error(
          `${submissionId} cannot be tracked at both upstreams ${row?.upstream} and ${upstream}`,
        );
      return this.#changes.retrack(row, request, { now, outageMs });
    });
    return { kind: 'tracked', submissions };
  }

  /**
   * Inserts a newly tracked submission and its first row of history. Returns undefined if the id is
   * tracked already. `outageMs`: the reading of the upstream's outage clock, in milliseconds.
   */
  #insert(request: TrackRequest, now: number, outageMs: number): Submission | undefined {
    const {
      submissionId,
      upstream,
      metadata,
      callbackUrl,
      trackedAt = now,
      credential = null,
      traceparent,
    } = request;
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
    if (text !== null) this.#db.run(INDEX_METADATA, { id, text });
    if (traceparent !== undefined)
      this.#db
        .run`INSERT OR REPLACE INTO submission_traces (submission, traceparent) VALUES (${id}, ${traceparent})`;
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
    this.#history.add(id, submission, { previousStatus: null, at: now });
    return submission;
  }

  /**
   * Records observations, except those of submissions that are not tracked. `openUntil`: the latest
   * time at which a submission that was found final was certainly not final, where it is known.
   */
  record(
    observations: readonly Observation[],
    context: TransitionContext,
    openUntil: ReadonlyMap<Observation, number>,
  ): RecordedObservation[] {
    const finals: FinalChange[] = [];
    const recorded = observations.flatMap(
      (one) => this.#record(one, context, { openUntil: openUntil.get(one), finals }) ?? [],
    );
    for (const count of finals.length > 0 ? this.#onFinal : []) count(finals);
    return recorded;
  }

  /** `finals`: gets the change if its status is final. */
  #record(
    observation: Observation,
    context: TransitionContext,
    { openUntil, finals }: { openUntil: number | undefined; finals: FinalChange[] },
  ): RecordedObservation | undefined {
    const { at } = observation;
    const row = this.#queries.findRow(observation.submissionId);
    if (!row) return undefined;
    // A time of the newest poll that lies in the future was written by a clock that was ahead, and
    // is ignored.
    const isOvertaken = row.polledAt !== null && at < row.polledAt && row.polledAt <= context.now;
    // The poll was sent before the submission was tracked again. Its response is still valid.
    const beganAt = row.version > 1 && !isSeen(observation) ? this.#trackedAgainAt(row) : null;
    const isOutdated =
      beganAt !== null && at - observation.durationMs < beganAt && beganAt <= context.now;
    const isStale = isOvertaken || isOutdated;
    const before = toSubmission(row);
    const result = isStale ? unchanged(before) : transition(before, observation, context);
    const polledAt = isStale ? row.polledAt : at;
    const submission = this.#write({ row, before }, result, { at, polledAt });
    if (result.change && isFinal(submission.status)) {
      const lagMs =
        openUntil === undefined
          ? null
          : Math.max(0, Math.round(at - Math.max(row.trackedAt, openUntil)));
      finals.push({ id: row.id, before, after: submission, at, lagMs });
    }
    return { observation, result, previousStatus: row.status, submission };
  }

  /**
   * Returns when an ended submission was last tracked again; null: never. `tracked_at` may be
   * earlier.
   */
  #trackedAgainAt({ id }: SubmissionRow): number | null {
    const at = this.#db.value<number | null>`
      SELECT max(at) FROM history WHERE submission = ${id} AND status = 'tracking' AND previous_status <> 'tracking'`;
    return at ?? null;
  }

  /**
   * Writes the result of an observation and returns the new state. `row` and `before` are the
   * submission as read in this transaction. `polledAt`: time of the newest response.
   */
  #write(
    { row, before }: { row: SubmissionRow; before: Submission },
    result: TransitionResult,
    { at, polledAt }: { at: number; polledAt: number | null },
  ): Submission {
    const { change } = result;
    const after: Submission = {
      ...before,
      watched: result.watched,
      stuck: before.stuck || result.becameStuck,
      polls: before.polls + 1,
      polledAt,
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
      if (change.status === Status.finalized) after.finalizedAt ??= at;
    }
    const { status, version } = after;
    const previousStatus = before.status;
    this.#update(row, { before, after }, row.endedAt ?? (change && isFinal(status) ? at : null));
    this.#counts.moved(previousStatus, status);
    if (change) this.#history.add(row.id, after, { previousStatus, at });
    if (change?.event) this.#outbox.addSubmissionEvent(change.event, { ...row, version }, at);
    if (result.becameStuck) this.#outbox.addSubmissionEvent(Event.stuck, { ...row, version }, at);
    return after;
  }

  /**
   * SQLite rewrites the index entries of every column that an UPDATE names, so the frequent updates
   * name few of them. That saves 8 of the 50 µs of a poll (row polls-local).
   */
  #update(
    row: SubmissionRow,
    { before, after }: Record<'before' | 'after', Submission>,
    endedAt: number | null,
  ): void {
    const {
      status,
      version,
      polls,
      polledAt,
      noResponseSince,
      notFoundMs,
      notFoundSince,
      finalizedAt,
    } = after;
    if (after.watched !== before.watched || after.stuck !== before.stuck || endedAt !== row.endedAt)
      this.#db.run`
        UPDATE submissions
        SET status = ${status}, watched = ${after.watched ? 1 : 0}, stuck = ${after.stuck ? 1 : 0},
            version = ${version}, polls = ${polls}, polled_at = ${polledAt}, no_response_since = ${noResponseSince},
            not_found_ms = ${notFoundMs}, not_found_since = ${notFoundSince}, finalized_at = ${finalizedAt},
            ended_at = ${endedAt}
        WHERE id = ${row.id}`;
    else if (version !== before.version)
      this.#db.run`
        UPDATE submissions
        SET status = ${status}, version = ${version}, polls = ${polls}, polled_at = ${polledAt},
            no_response_since = ${noResponseSince}, not_found_since = ${notFoundSince}
        WHERE id = ${row.id}`;
    else
      this.#db.run`
        UPDATE submissions
        SET polls = ${polls}, polled_at = ${polledAt}, no_response_since = ${noResponseSince}, not_found_ms = ${notFoundMs},
            not_found_since = ${notFoundSince}
        WHERE id = ${row.id}`;
  }
}

function unchanged({
  watched,
  noResponseSince,
  notFoundMs,
  notFoundSince,
}: Submission): TransitionResult {
  return { change: null, watched, becameStuck: false, noResponseSince, notFoundMs, notFoundSince };
}
