import type { Observation } from '../../domain/classify.ts';
import { canRetrack, isFinal, Status, type Submission, type TrackRequest } from '../../domain/submission.ts';
import {
  changedOptions,
  changesBetween,
  limitsFrom,
  type OptionsPatch,
  TIME_LIMITS,
  unappliedOptions,
  withOptions,
} from '../../domain/tracking/option-changes.ts';
import {
  contextWithoutLimits,
  type TransitionContext,
  type TransitionResult,
  transition,
} from '../../domain/transition.ts';
import { isSeen } from '../../domain/upstream-health.ts';
import type { RecordedObservation, TrackedSubmission, TrackResult, UpdateResult } from '../../watch/ports.ts';
import type { LedgerDatabase } from '../file/ledger-database.ts';
import { type AddedMetadata, MetadataIndex } from './metadata-index.ts';
import type { OpenQuota } from './open-quota.ts';
import { SubmissionQueries } from './submission-queries.ts';
import { type SubmissionRow, toSubmission } from './submission-rows.ts';
import type { SubmissionWriter } from './submission-writer.ts';
import { UpstreamStore } from './upstream-store.ts';

/**
 * `outages`: the outage clock of each upstream, in ms. `begun`: submissions that the transaction has begun to track. `added`: the
 * metadata of the new ones.
 */
type TrackTransaction = { outages: Map<string, number>; begun: number; added: AddedMetadata[] };

/** Tracks, cancels and updates submissions. Every method that writes must be called inside a transaction. */
export class SubmissionStore {
  readonly #db: LedgerDatabase;
  readonly #queries: SubmissionQueries;
  readonly #writer: SubmissionWriter;
  readonly #upstreams: UpstreamStore;
  readonly #metadata: MetadataIndex;
  readonly #quota: OpenQuota;

  constructor(database: LedgerDatabase, writer: SubmissionWriter, quota: OpenQuota) {
    this.#db = database;
    this.#quota = quota;
    this.#writer = writer;
    this.#queries = new SubmissionQueries(database);
    this.#upstreams = new UpstreamStore(database);
    this.#metadata = new MetadataIndex(database);
  }

  /** Tracks all or none of the requests of each group. */
  track(groups: readonly (readonly TrackRequest[])[], now: number): TrackResult[] {
    const transaction: TrackTransaction = { outages: new Map(), begun: 0, added: [] };
    const results = groups.map((requests) => this.#trackGroup(requests, now, transaction));
    this.#metadata.add(transaction.added);
    return results;
  }

  #trackGroup(requests: readonly TrackRequest[], now: number, transaction: TrackTransaction): TrackResult {
    const { outages, added } = transaction;
    const known = requests.map((request) => this.#queries.findRow(request.submissionId));
    const beginning = new Set<string>();
    for (const [index, { submissionId, upstream, deadlineAt, retrack, trackedAt = now }] of requests.entries()) {
      const row = known[index];
      if (row && row.upstream !== upstream) return { kind: 'conflict', index, submission: toSubmission(row) };
      const begins = !row || (retrack && canRetrack(row.status));
      if (begins && deadlineAt <= trackedAt) return { kind: 'late', index };
      if (begins) beginning.add(submissionId);
    }
    const excess = this.#quota.exceededBy(beginning.size, transaction.begun);
    if (excess) return { kind: 'over_quota', ...excess };
    transaction.begun += beginning.size;
    const submissions = requests.map((request, index): TrackedSubmission => {
      const { submissionId, upstream } = request;
      const outageMs = outages.get(upstream) ?? this.#upstreams.outageMs(upstream, now);
      outages.set(upstream, outageMs);
      const inserted = known[index] ? undefined : this.#writer.insert(request, { now, outageMs, added });
      if (inserted) return { submission: inserted, effect: 'accepted', notApplied: [] };
      // The id may occur twice in one batch: then the first request has inserted it, or tracked it again.
      const read = request.retrack ? undefined : known[index];
      const row = read ?? this.#queries.findRow(submissionId);
      if (row?.upstream !== upstream)
        throw new Error(`${submissionId} cannot be tracked at both upstreams ${row?.upstream} and ${upstream}`);
      return this.#trackKnown(row, request, { now, outageMs });
    });
    return { kind: 'tracked', submissions };
  }

  #trackKnown(
    row: SubmissionRow,
    request: TrackRequest,
    { now, outageMs }: { now: number; outageMs: number },
  ): TrackedSubmission {
    const before = toSubmission(row);
    const { change, ...result } = transition(before, { kind: 'retrack', at: now }, contextWithoutLimits(now));
    if (!request.retrack || !change) {
      const effect = isFinal(before.status) ? 'already_final' : 'already_tracked';
      return { submission: before, effect, notApplied: unappliedOptions(request, before, now) };
    }
    const { event, ...state } = change;
    const { named = [] } = request;
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
    const submission = this.#writer.applyRequest({ row, before }, after, { at: now, event });
    this.#writer.writeTrace(row.id, request.traceparent);
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
    const submission = this.#writer.applyRequest({ row, before }, after, { at: now, event: null });
    return { kind: 'updated', submission, changed: changedOptions(changes) };
  }

  /** Returns the submission after the cancellation, and whether that changed it; undefined if it was never tracked. */
  cancel(submissionId: string, now: number): { submission: Submission; isChanged: boolean } | undefined {
    const row = this.#queries.findRow(submissionId);
    if (!row) return undefined;
    const before = toSubmission(row);
    const result = transition(before, { kind: 'cancel', at: now }, contextWithoutLimits(now));
    const input = { at: now, polls: 0, polledAt: row.polledAt };
    return {
      submission: this.#writer.applyTransition({ row, before }, result, input),
      isChanged: result.change !== null,
    };
  }

  /**
   * Records one observation. Returns undefined if the submission is not tracked. `openUntil`: the latest time at which a
   * submission that was found final was certainly not final; undefined: not known.
   */
  record(
    observation: Observation,
    context: TransitionContext,
    openUntil?: number | undefined,
  ): RecordedObservation | undefined {
    const { at } = observation;
    const row = this.#queries.findRow(observation.submissionId);
    if (!row) return undefined;
    // A time of the newest poll that lies in the future was written by a clock that was ahead, and is ignored.
    const isOvertaken = row.polledAt !== null && at < row.polledAt && row.polledAt <= context.now;
    // The poll was sent before the submission was tracked again. Its response is still valid.
    const beganAt = row.version > 1 && !isSeen(observation) ? this.#trackedAgainAt(row) : null;
    const isOutdated = beganAt !== null && at - observation.durationMs < beganAt && beganAt <= context.now;
    const isStale = isOvertaken || isOutdated;
    const before = toSubmission(row);
    const result = isStale ? unchanged(before) : transition(before, observation, context);
    const polledAt = isStale ? row.polledAt : at;
    const lagMs = openUntil === undefined ? null : Math.max(0, Math.round(at - Math.max(row.trackedAt, openUntil)));
    const submission = this.#writer.applyTransition({ row, before }, result, { at, polls: 1, polledAt, lagMs });
    return { observation, result, previousStatus: row.status, submission };
  }

  /** Returns when an ended submission was last tracked again; null: never. `tracked_at` may be earlier. */
  #trackedAgainAt({ id }: SubmissionRow): number | null {
    const at = this.#db.value<number | null>`
      SELECT max(at) FROM history WHERE submission = ${id} AND status = 'tracking' AND previous_status <> 'tracking'`;
    return at ?? null;
  }

  /** Returns one page of the submissions that the scheduler of an upstream is rebuilt from, and where the next begins. */
  listWatched(upstream: string, { after, limit }: { after: number; limit: number }) {
    type WatchedRow = Pick<Submission, 'submissionId' | 'trackedAt' | 'status' | 'polledAt' | 'finalizedAt'>;
    const rows = this.#db.rows<WatchedRow & { id: number }>`
      SELECT id, submission_id AS submissionId, tracked_at AS trackedAt, status, polled_at AS polledAt,
             finalized_at AS finalizedAt
      FROM submissions WHERE upstream = ${upstream} AND watched = 1 AND id > ${after} ORDER BY id LIMIT ${limit}`;
    const watched = rows.map(({ submissionId, trackedAt, status, polledAt, finalizedAt }) => {
      return { submissionId, trackedAt, seen: status !== Status.tracking, polledAt, finalizedAt };
    });
    return { watched, next: rows.length === limit ? (rows.at(-1)?.id ?? null) : null };
  }

  /** Returns a submission that the upstream has finalized. Searches the newest 1,000 of all upstreams, to bound the time. */
  findShownId(upstream: string): string | undefined {
    return this.#db.value<string>`
      SELECT submission_id
      FROM (SELECT upstream, submission_id FROM submissions WHERE status = 'finalized' ORDER BY id DESC LIMIT 1000)
      WHERE upstream = ${upstream} LIMIT 1`;
  }
}

function unchanged({ watched, noResponseSince, notFoundMs, notFoundSince }: Submission): TransitionResult {
  return { change: null, watched, becameStuck: false, noResponseSince, notFoundMs, notFoundSince };
}
