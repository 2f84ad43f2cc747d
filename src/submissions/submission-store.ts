import { CommittedChanges, type LedgerDatabase } from '../ledger/ledger-database.ts';
import { isSameJson } from '../lib/json.ts';
import type { Observation } from './classify.ts';
import { SubmissionEventType as Event, type SubmissionEventType } from './event-types.ts';
import { type FinalitySums, finalizationsOf } from './ledger-stats.ts';
import {
  changedOptions,
  changesBetween,
  conflictBetween,
  limitsFrom,
  type OptionsPatch,
  otherOptions,
  TIME_LIMITS,
  withOptions,
} from './option-changes.ts';
import { SEARCHABLE } from './search.ts';
import type {
  Detection,
  Detections,
  EndedSubmission,
  RecordedChange,
  TrackedSubmission,
  TrackRefusal,
  TrackResult,
  UpdateResult,
  Verdict,
} from './store-results.ts';
import {
  canRetrack,
  isFinal,
  MAX_HISTORY,
  NO_FINALITY,
  type OptionChanges,
  Status,
  type Submission,
  TEXT_OPTIONS,
  type TrackRequest,
  textsOf,
  textsWith,
} from './submission.ts';
import {
  type StatusCounts,
  SubmissionQueries,
  type SubmissionRow,
  toSubmission,
} from './submission-queries.ts';
import {
  contextOfRequest,
  staleResult,
  stateAfter,
  type TransitionContext,
  type TransitionInput,
  transition,
} from './transition.ts';
import { isSeen } from './upstream.ts';

type EndInput = Extract<TransitionInput, { kind: 'cancel' | 'deadline' }>;

/** The values within SEARCHABLE, as text. Triggers maintain the index after changes. */
const INDEX_METADATA = `
  INSERT OR IGNORE INTO submission_metadata
  SELECT key, CASE type WHEN 'text' THEN value ELSE @text -> fullkey END, @id FROM json_each(@text)
  WHERE type NOT IN ('object', 'array') AND octet_length(key) BETWEEN 1 AND ${SEARCHABLE.nameBytes}
    AND (type <> 'text' OR octet_length(value) <= ${SEARCHABLE.valueBytes})
  LIMIT ${SEARCHABLE.names}`;

const INSERT = `
  INSERT INTO submissions (submission_id, upstream, status, watched, version, tracked_at, deadline_at, grace_ends_at,
                           stuck_at, metadata, callback_url, ${TEXT_OPTIONS.map(({ name }) => name)})
  VALUES (@submissionId, @upstream, 'tracking', 1, 1, @trackedAt, @deadlineAt, @graceEndsAt,
          @stuckAt, @metadata, @callbackUrl, ${TEXT_OPTIONS.map(({ key }) => `@${key}`)})`;

const UPDATE_OPTIONS = `
  UPDATE submissions
  SET tracked_at = @trackedAt, deadline_at = @deadlineAt, grace_ends_at = @graceEndsAt, stuck_at = @stuckAt,
      metadata = @metadata, callback_url = @callbackUrl, ${TEXT_OPTIONS.map(({ name, key }) => `${name} = @${key}`)}
  WHERE id = @id`;

/** Adds the events of a submission and their deliveries, in the transaction of the change. */
export type SubmissionEvents = {
  /** Must be called after the change was added to the history. */
  addSubmissionEvent(type: SubmissionEventType, row: SubmissionRow, at: number): void;
  /** Directs the waiting and dead callbacks of a submission to its new URL; null discards them. */
  moveCallbacks(row: SubmissionRow, to: string | null, at: number): void;
};

type StoreDeps = {
  outbox: SubmissionEvents;
  counts: StatusCounts;
  sums: FinalitySums;
};

type Read = { row: SubmissionRow; before: Submission };
type Change = { at: number; event?: SubmissionEventType | null; changes?: OptionChanges | null };
/** A submission after its cancellation or deadline, and whether that changed it. */
type EndResult = EndedSubmission & { isChanged: boolean };

/** What a caller changed. `deadline`: an open submission has another one. */
export type SubmissionChange = {
  kind: 'accepted' | 'retracked' | 'deadline' | 'cancelled';
  submission: Submission;
};

/** Whether the chain does not confirm yet what the upstream reports, before the deadline. */
function isInVerification({ chain, status, deadlineAt }: Submission, at: number): 0 | 1 {
  const isAnswered = chain === 'unavailable' || chain === 'contradicted';
  return isAnswered && !canRetrack(status) && at < deadlineAt ? 1 : 0;
}

/** Every method is one transaction, or joins the one of its caller. */
export class SubmissionStore {
  readonly changes: CommittedChanges<SubmissionChange>;
  readonly #db: LedgerDatabase;
  readonly #outbox: SubmissionEvents;
  readonly #counts: StatusCounts;
  readonly #sums: FinalitySums;
  readonly #queries: SubmissionQueries;

  constructor(database: LedgerDatabase, { outbox, counts, sums }: StoreDeps) {
    this.#db = database;
    this.changes = new CommittedChanges(database);
    this.#outbox = outbox;
    this.#counts = counts;
    this.#sums = sums;
    this.#queries = new SubmissionQueries(database);
  }

  /** Tracks groups of submissions, each accepted or refused independently as a whole. */
  track(groups: readonly (readonly TrackRequest[])[], now: number): TrackResult[] {
    return this.#db.transaction(() => groups.map((requests) => this.#trackGroup(requests, now)));
  }

  #trackGroup(requests: readonly TrackRequest[], now: number): TrackResult {
    const rows = requests.map(({ submissionId }) => this.#queries.findRow(submissionId));
    const refusal = this.#refusalOf(requests, rows, now);
    if (refusal) return refusal;
    const submissions = requests.map((request, index): TrackedSubmission => {
      const row = rows[index];
      const tracked: TrackedSubmission = row
        ? this.#retrack(row, request, now)
        : { submission: this.#insert(request, now), effect: 'accepted' };
      const { submission, effect } = tracked;
      if (effect === 'accepted' || effect === 'retracked')
        this.changes.add({ kind: effect, submission });
      return row ? { ...tracked, kept: otherOptions(submission, request, now) } : tracked;
    });
    return { kind: 'tracked', submissions };
  }

  #refusalOf(
    requests: readonly TrackRequest[],
    rows: readonly (SubmissionRow | undefined)[],
    now: number,
  ): TrackRefusal | undefined {
    for (const [index, request] of requests.entries()) {
      const { retrack, trackedAt = now } = request;
      const row = rows[index];
      const option = row && conflictBetween(row, request);
      if (option) return { kind: 'conflict', index, option, submission: toSubmission(row) };
      const begins = !row || (retrack && canRetrack(row.status));
      if (begins && limitsFrom(request, now).deadlineAt <= trackedAt)
        return { kind: 'late', index };
    }
    return undefined;
  }

  #insert(request: TrackRequest, now: number): Submission {
    const { submissionId, upstream, metadata, callbackUrl, trackedAt = now } = request;
    const limits = limitsFrom(request, now);
    const texts = textsOf(request);
    const text = metadata && JSON.stringify(metadata);
    const values = { submissionId, upstream, trackedAt, callbackUrl, metadata: text };
    const { lastInsertRowid } = this.#db.run(INSERT, { ...values, ...limits, ...texts });
    const id = Number(lastInsertRowid);
    if (text !== null) this.#db.run(INDEX_METADATA, { id, text });
    const submission: Submission = {
      submissionId,
      upstream,
      ...limits,
      metadata,
      callbackUrl,
      ...texts,
      status: Status.tracking,
      watched: true,
      stuck: false,
      version: 1,
      polls: 0,
      polledAt: null,
      notFoundSince: null,
      trackedAt,
      ...NO_FINALITY,
      upstreamState: null,
      error: null,
      envelope: null,
      chain: null,
      chainReason: null,
      proof: null,
    };
    this.#counts.moved(null, submission.status);
    this.#addHistory(id, submission, null, { at: now });
    return submission;
  }

  /**
   * An observation older than the recorded one changes nothing. `detections`: of those found final.
   */
  record(
    observations: readonly Observation[],
    context: TransitionContext,
    detections: Detections = new Map(),
  ): RecordedChange[] {
    return this.#recordAll(observations, (one) =>
      this.#record(one, context, detections.get(one) ?? null),
    );
  }

  /** A verdict about a submission that has changed since changes nothing. */
  verify(verdicts: readonly Verdict[], context: TransitionContext): RecordedChange[] {
    return this.#recordAll(verdicts, (one) => this.#verify(one, context));
  }

  #recordAll<One>(
    list: readonly One[],
    record: (one: One) => RecordedChange | undefined,
  ): RecordedChange[] {
    return this.#db.transaction(() => {
      const recorded = list.flatMap((one) => record(one) ?? []);
      this.#sums.add(finalizationsOf(recorded));
      return recorded;
    });
  }

  #record(
    observation: Observation,
    context: TransitionContext,
    detection: Detection | null,
  ): RecordedChange | undefined {
    const { at } = observation;
    const row = this.#queries.findRow(observation.submissionId);
    if (!row) return undefined;
    // A time of a poll in the future was written by a clock that was ahead.
    const isOvertaken = row.polledAt !== null && at < row.polledAt && row.polledAt <= context.now;
    // The poll was sent before the submission was tracked again. Its response is still valid.
    const beganAt = row.version > 1 && !isSeen(observation) ? this.#trackedAgainAt(row) : null;
    const isOutdated =
      beganAt !== null && at - observation.durationMs < beganAt && beganAt <= context.now;
    const isStale = isOvertaken || isOutdated;
    const before = toSubmission(row);
    const result = isStale ? staleResult(before) : transition(before, observation, context);
    const polled = { polls: row.polls + 1, polledAt: isStale ? row.polledAt : at };
    const change = { at, observation, result, previousStatus: row.status, detection };
    return { ...change, submission: this.#writeResult({ row, before }, change, polled) };
  }

  #verify(
    { stored: { submissionId, version }, chain, isHeld, detection }: Verdict,
    context: TransitionContext,
  ): RecordedChange | undefined {
    const row = this.#queries.findRow(submissionId);
    if (row?.version !== version) return undefined;
    const before = toSubmission(row);
    const at = context.now;
    const result = transition(before, { kind: 'verified', at, chain, isHeld }, context);
    const change = { at, observation: null, result, previousStatus: row.status, detection };
    return { ...change, submission: this.#writeResult({ row, before }, change, before) };
  }

  /** Returns when it was last tracked again; null: never. `tracked_at` may be earlier. */
  #trackedAgainAt({ id }: SubmissionRow): number | null {
    const at = this.#db.value<number | null>`
      SELECT max(at) FROM history WHERE submission = ${id} AND status = 'tracking' AND previous_status <> 'tracking'`;
    return at ?? null;
  }

  /** Tracks it again if the request demands it; an open one takes only its first data hash. */
  #retrack(row: SubmissionRow, request: TrackRequest, now: number): TrackedSubmission {
    const before = toSubmission(row);
    const { change, ...result } = transition(
      before,
      { kind: 'retrack', at: now },
      contextOfRequest(now),
    );
    const { named = [], dataHash = null } = request;
    if (!request.retrack || !change || before.version >= MAX_HISTORY) {
      if (isFinal(before.status)) return { submission: before, effect: 'already_final' };
      const effect = 'already_tracked';
      if (dataHash === null || before.dataHash !== null || before.version >= MAX_HISTORY)
        return { submission: before, effect };
      const after = withOptions(before, { dataHash }, now);
      return { submission: this.#writeOptions({ row, before }, after, { at: now }), effect };
    }
    const { event, ...state } = stateAfter(change);
    const after: Submission = {
      ...before,
      ...state,
      watched: result.watched,
      stuck: false,
      notFoundSince: result.notFoundSince,
      polledAt: null,
      trackedAt: request.trackedAt ?? now,
      ...limitsFrom(request, now),
      ...(named.includes('metadata') && { metadata: request.metadata }),
      ...(named.includes('callback_url') && { callbackUrl: request.callbackUrl }),
      ...textsWith(({ name, key }) => (named.includes(name) ? (request[key] ?? null) : undefined)),
    };
    const submission = this.#writeOptions({ row, before }, after, { at: now, event });
    return { submission, effect: 'retracked' };
  }

  update(submissionId: string, patch: OptionsPatch, now: number): UpdateResult | undefined {
    return this.#db.transaction(() => this.#update(submissionId, patch, now));
  }

  #update(submissionId: string, patch: OptionsPatch, now: number): UpdateResult | undefined {
    const row = this.#queries.findRow(submissionId);
    if (!row) return undefined;
    const before = toSubmission(row);
    if (isFinal(before.status) && TIME_LIMITS.some((name) => patch[name] !== undefined))
      return { kind: 'final', submission: before };
    if (patch.deadlineAt !== undefined && patch.deadlineAt <= now) return { kind: 'late' };
    const after = withOptions(before, patch, now);
    const changes = changesBetween(before, after);
    if (changes === null) return { kind: 'updated', submission: before, changed: [] };
    if (before.version >= MAX_HISTORY) return { kind: 'long_history', submission: before };
    const submission = this.#writeOptions({ row, before }, after, { at: now });
    const changed = changedOptions(changes);
    if (changed.includes('deadline')) this.changes.add({ kind: 'deadline', submission });
    return { kind: 'updated', submission, changed };
  }

  /** Cancels an open submission. Undefined: the id was never tracked. */
  cancel(submissionId: string, now: number): EndResult | undefined {
    return this.#db.transaction(() => {
      const result = this.#end(submissionId, { kind: 'cancel', at: now });
      if (result?.isChanged) this.changes.add({ kind: 'cancelled', submission: result.submission });
      return result;
    });
  }

  /** Ends open submissions whose deadlines have passed without an answer, and returns them. */
  expire(
    ids: readonly string[],
    now: number,
    reasonOf: (submissionId: string) => string,
  ): EndedSubmission[] {
    if (ids.length === 0) return [];
    return this.#db.transaction(() =>
      ids.flatMap((id) => {
        const ended = this.#end(id, { kind: 'deadline', at: now, reason: reasonOf(id) });
        return ended?.isChanged ? [ended] : [];
      }),
    );
  }

  #end(submissionId: string, input: EndInput): EndResult | undefined {
    const row = this.#queries.findRow(submissionId);
    if (!row) return undefined;
    const before = toSubmission(row);
    const { at: now } = input;
    const previousStatus = before.status;
    const result = transition(before, input, contextOfRequest(now));
    if (!result.change) return { submission: before, previousStatus, at: now, isChanged: false };
    const { event, ...state } = stateAfter(result.change);
    const after = { ...before, ...state, watched: result.watched, version: before.version + 1 };
    this.#write({ row, before }, after, { at: now, event });
    return { submission: after, previousStatus, at: now, isChanged: true };
  }

  #writeResult(
    { row, before }: Read,
    { at, result, detection }: Omit<RecordedChange, 'submission'>,
    { polls, polledAt }: Pick<Submission, 'polls' | 'polledAt'>,
  ): Submission {
    const { change } = result;
    const after: Submission = {
      ...before,
      watched: result.watched,
      stuck: before.stuck || result.becameStuck,
      polls,
      polledAt,
      notFoundSince: result.notFoundSince,
    };
    if (change) {
      const { event, ...state } = stateAfter(change);
      Object.assign(after, state);
      after.version += 1;
      if (change.status === Status.finalized && after.finalizedAt === null) {
        after.finalizedAt = at;
        after.finalityAt = detection?.finalityAt ?? null;
        after.finalitySource = detection?.source ?? null;
      }
      this.#write({ row, before }, after, { at, event });
    } else if (
      after.watched !== before.watched ||
      after.stuck !== before.stuck ||
      row.inVerification !== isInVerification(after, at)
    )
      this.#writeState(row, after, at);
    else if (after.polls !== before.polls) this.#writePoll(row.id, after);
    if (result.becameStuck)
      this.#outbox.addSubmissionEvent(Event.stuck, { ...row, version: after.version }, at);
    if (result.becameContradicted)
      this.#outbox.addSubmissionEvent(Event.contradicted, { ...row, version: after.version }, at);
    return after;
  }

  /** Returns `after` with its new version. The history names the changed options. */
  #writeOptions({ row, before }: Read, options: Submission, change: Change): Submission {
    const after = { ...options, version: before.version + 1 };
    // Unchanged metadata keep their text, which may be damaged.
    const isSame = isSameJson(before.metadata, after.metadata);
    const metadata = isSame ? row.metadata : after.metadata && JSON.stringify(after.metadata);
    const { callbackUrl } = after;
    this.#db.run(UPDATE_OPTIONS, {
      ...{ trackedAt: after.trackedAt, deadlineAt: after.deadlineAt, stuckAt: after.stuckAt },
      ...{ graceEndsAt: after.graceEndsAt, metadata, callbackUrl, ...textsOf(after), id: row.id },
    });
    if (callbackUrl !== row.callbackUrl) this.#outbox.moveCallbacks(row, callbackUrl, change.at);
    this.#write({ row: { ...row, metadata, callbackUrl }, before }, after, {
      ...change,
      changes: changesBetween(before, after),
    });
    return after;
  }

  #write({ row, before }: Read, after: Submission, change: Change): void {
    const { at, event = null } = change;
    this.#writeState(row, after, at);
    this.#counts.moved(before.status, after.status);
    this.#addHistory(row.id, after, before.status, change);
    if (event !== null)
      this.#outbox.addSubmissionEvent(event, { ...row, version: after.version }, at);
  }

  #writeState(row: SubmissionRow, after: Submission, at: number): void {
    const { status, version, polls, polledAt, notFoundSince } = after;
    this.#db.run`
      UPDATE submissions
      SET status = ${status}, watched = ${after.watched ? 1 : 0}, stuck = ${after.stuck ? 1 : 0},
          version = ${version}, polls = ${polls}, polled_at = ${polledAt},
          not_found_since = ${notFoundSince}, finalized_at = ${after.finalizedAt},
          finality_at = ${after.finalityAt}, finality_source = ${after.finalitySource},
          ended_at = ${isFinal(status) ? (row.endedAt ?? at) : null},
          chain = ${after.chain}, in_verification = ${isInVerification(after, at)}
      WHERE id = ${row.id}`;
  }

  /** SQLite rewrites the index entries of named columns; few save 8 of 50 µs (row polls-local). */
  #writePoll(id: number, after: Submission): void {
    const { polls, polledAt, notFoundSince } = after;
    this.#db.run`
      UPDATE submissions
      SET polls = ${polls}, polled_at = ${polledAt}, not_found_since = ${notFoundSince}
      WHERE id = ${id}`;
  }

  /** Adds one row to the append-only history: the submission after a change. */
  #addHistory(id: number, after: Submission, previousStatus: Status | null, change: Change): void {
    const { version, status, upstreamState, error, envelope, polls, chain, chainReason, proof } =
      after;
    const { at, changes = null } = change;
    this.#db.run`
      INSERT INTO history (submission, version, at, status, previous_status, upstream_state, error, response, changes, polls,
                           chain, chain_reason, proof_block, leaf)
      VALUES (${id}, ${version}, ${at}, ${status}, ${previousStatus}, ${upstreamState}, ${error}, ${envelope},
              ${changes && JSON.stringify(changes)}, ${polls}, ${chain}, ${chainReason},
              ${proof?.blockHash ?? null}, ${proof?.leaf ?? null})`;
    if (!proof?.block) return;
    const { hash, header, dataRoot, bridgeRoot, leaves } = proof.block;
    this.#db.run`
      INSERT INTO proof_blocks (hash, header, data_root, bridge_root, leaves)
      VALUES (${hash}, ${header}, ${dataRoot}, ${bridgeRoot}, ${leaves}) ON CONFLICT DO NOTHING`;
  }
}
