import type Database from 'better-sqlite3';
import type { Observation } from '../domain/classify.ts';
import type { ReportUnreadable } from '../domain/stored.ts';
import {
  canonicalId,
  type HistoryEntry,
  Status,
  type Submission,
  type TrackRequest,
  uuidPrefix,
} from '../domain/submission.ts';
import {
  contextWithoutLimits,
  type TransitionContext,
  type TransitionResult,
  transition,
} from '../domain/transition.ts';
import type { PauseRecord } from '../watch/outage-clock.ts';
import type {
  RecordedObservation,
  TrackResult,
  UpstreamChange,
  UpstreamRecord,
  WatcherLedger,
} from '../watch/ports.ts';
import { AuditTrail } from './access/audit.ts';
import { CredentialStore } from './access/credentials.ts';
import { Alerts } from './deliveries/alerts.ts';
import { Deliveries } from './deliveries/deliveries.ts';
import { Webhooks } from './deliveries/webhooks.ts';
import { type ChannelRoute, FanOut } from './events/fan-out.ts';
import { Outbox } from './events/outbox.ts';
import { LedgerDatabase } from './file/ledger-database.ts';
import { type OpenOptions, openDatabase, probe } from './file/open.ts';
import { takePage } from './file/page.ts';
import { Pruning } from './maintenance/pruning.ts';
import { Space } from './maintenance/space.ts';
import { LedgerStats } from './stats/ledger-stats.ts';
import { StatusCounts } from './submissions/status-counts.ts';
import {
  type HistoryRow,
  OUTAGE_MS,
  SELECT_SUBMISSION,
  type SubmissionRow,
  toHistoryEntry,
  toSubmission,
  UUID_GLOB,
} from './submissions/submission-rows.ts';
import { SubmissionWriter } from './submissions/submission-writer.ts';

export type ListQuery = {
  status?: Status | undefined;
  limit: number;
  /** Only those tracked before the one with this position. */
  before?: number | undefined;
};

export type PrefixQuery = {
  prefix: string;
  limit: number;
  /** Only those whose ids come after this one, be it tracked or not. */
  after?: string | undefined;
};

/**
 * The truth, in one SQLite file. Every method is one transaction: when it returns, it is on the disk; when it throws
 * (LedgerError), nothing of it is.
 */
export class Ledger implements WatcherLedger {
  readonly file: string;
  /** Files that others could read or write until it was opened. */
  readonly tightened: readonly string[];
  readonly credentials: CredentialStore;
  readonly audit: AuditTrail;
  readonly outbox: Outbox;
  readonly webhooks: Webhooks;
  readonly deliveries: Deliveries;
  readonly alerts: Alerts;
  readonly stats: LedgerStats;
  readonly pruning: Pruning;
  readonly space: Space;
  readonly #db: Database.Database;
  readonly #close: () => void;
  readonly #transactions: LedgerDatabase;
  readonly #fanOut: FanOut;
  readonly #writer: SubmissionWriter;
  readonly #sql: ReturnType<typeof prepareStatements>;

  constructor(options: OpenOptions) {
    this.file = options.file;
    const { db, tightened, close } = openDatabase(options);
    this.tightened = tightened;
    this.#db = db;
    this.#close = close;
    this.credentials = new CredentialStore(db, options.file);
    this.audit = new AuditTrail(db, options.file);
    const transactions = new LedgerDatabase(db, options.file);
    this.#transactions = transactions;
    this.#fanOut = new FanOut(transactions);
    this.outbox = new Outbox(transactions, this.#fanOut);
    this.webhooks = new Webhooks(transactions, this.#fanOut);
    this.deliveries = new Deliveries(transactions, this.#fanOut, this.webhooks);
    const counts = new StatusCounts(transactions);
    this.stats = new LedgerStats(transactions, counts);
    this.#writer = new SubmissionWriter(db, this.outbox, counts);
    this.pruning = new Pruning(transactions, counts);
    this.space = new Space(db, options.file, this.stats);
    this.alerts = new Alerts(transactions, this.outbox, this.stats);
    this.#sql = prepareStatements(db);
  }

  close(): void {
    this.#close();
  }

  /** Calls `report` for what writing an event reads and can't read. What is shown is reported by who shows it. */
  onUnreadable(report: ReportUnreadable): void {
    this.#fanOut.onUnreadable = report;
  }

  /** Which events go to which channels, from now on. */
  setChannels(channels: readonly ChannelRoute[]): void {
    this.#fanOut.setChannels(channels);
  }

  /** An event for one webhook only. Gives back the number of its delivery; undefined: there is no webhook with an address of its own by that id. */
  test(webhookId: string, now: number): number | undefined {
    return this.#transactions.transaction(() => {
      if (!this.webhooks.get(webhookId, now)?.url) return undefined;
      return this.outbox.addTestEvent(webhookId, now);
    });
  }

  track(requests: readonly TrackRequest[], now: number): TrackResult {
    return this.#transactions.transaction(() => this.#track(requests, now, new Map()));
  }

  trackGroups(groups: readonly (readonly TrackRequest[])[], now: number): TrackResult[] {
    const outages = new Map<string, number>();
    return this.#transactions.transaction(() => groups.map((requests) => this.#track(requests, now, outages)));
  }

  cancel(submissionIds: readonly string[], now: number): (Submission | undefined)[] {
    return this.#transactions.transaction(() =>
      submissionIds.map((submissionId) => {
        const row = this.#find(submissionId);
        if (!row) return undefined;
        const before = toSubmission(row);
        const outcome = transition(before, { kind: 'cancel', at: now }, contextWithoutLimits(now));
        return this.#writer.applyOutcome({ row, before }, outcome, { at: now, polls: 0, polledAt: row.polled_at });
      }),
    );
  }

  record(observations: readonly Observation[], context: TransitionContext): RecordedObservation[] {
    return this.#transactions.transaction(() => {
      const recorded: RecordedObservation[] = [];
      for (const observation of observations) {
        const { at } = observation;
        const row = this.#find(observation.submissionId);
        if (!row) continue;
        // What is in the future was written by a clock that was ahead: then nothing would ever be newer.
        const stale = row.polled_at !== null && at < row.polled_at && row.polled_at <= context.now;
        const before = toSubmission(row);
        const outcome = stale ? nothing(before) : transition(before, observation, context);
        const submission = this.#writer.applyOutcome({ row, before }, outcome, {
          at,
          polls: 1,
          polledAt: stale ? row.polled_at : at,
        });
        recorded.push({ observation, result: outcome, previousStatus: row.status, submission });
      }
      return recorded;
    });
  }

  listWatched(upstream: string, { after, limit }: { after: number; limit: number }) {
    const rows = this.#transactions.read(() => this.#sql.watched.all(upstream, after, limit)) as WatchedRow[];
    const watched = rows.map((row) => ({
      submissionId: row.submission_id,
      trackedAt: row.tracked_at,
      seen: row.status !== Status.tracking,
      polledAt: row.polled_at,
      finalizedAt: row.finalized_at,
    }));
    return { watched, next: rows.length === limit ? (rows.at(-1)?.id ?? null) : null };
  }

  upstream(name: string): UpstreamRecord {
    return this.#transactions.transaction(() => {
      this.#sql.addUpstream.run(name);
      const row = this.#sql.upstream.get(name) as UpstreamRow;
      return {
        state: row.state,
        outSince: row.out_since,
        outageMs: row.outage_ms,
        pausedSince: row.paused_since,
        pausedUntil: row.paused_until,
        pollingUntil: row.asked_until,
        snapshot: (this.#sql.learned.pluck().get(`pacing:${name}`) as string | undefined) ?? null,
      };
    });
  }

  /** How many submissions are watched, by upstream. */
  watchedCounts(): Map<string, number> {
    const rows = this.#transactions.read(() => this.#sql.watchedCounts.raw().all()) as [string, number][];
    return new Map(rows);
  }

  recordUpstream(change: UpstreamChange): void {
    this.#transactions.transaction(() => {
      const { state, outSince, outageMs } = change.record;
      this.#sql.setUpstream.run({ name: change.upstream, state, outSince, outageMs });
      this.outbox.addUpstreamEvent(change.event, change.upstream, change.at);
    });
  }

  recordPause(upstream: string, pause: PauseRecord): void {
    this.#transactions.transaction(() => this.#sql.setPause.run({ upstream, ...pause }));
  }

  findShownId(upstream: string): string | undefined {
    return this.#transactions.read(() => this.#sql.shownId.get(upstream)) as string | undefined;
  }

  probe(now: number): void {
    this.#transactions.transaction(() => probe(this.#db, now));
  }

  recordPolling(upstream: string, until: number, learned: string | null): void {
    this.#transactions.transaction(() => {
      this.#sql.asking.run({ upstream, until });
      if (learned !== null) this.#sql.setLearned.run({ key: `pacing:${upstream}`, learned });
    });
  }

  get(submissionId: string): Submission | undefined {
    const row = this.#transactions.read(() => this.#find(submissionId));
    return row && toSubmission(row);
  }

  /** Each with its history, oldest first, all as of one moment; undefined: it was never tracked. */
  getWithHistory(
    submissionIds: readonly string[],
  ): ({ submission: Submission; history: HistoryEntry[] } | undefined)[] {
    return this.#transactions.snapshot(() =>
      submissionIds.map((id) => {
        const given = this.#sql.withHistory.all(id) as WithHistoryRow[];
        const rows = given.length > 0 ? given : (this.#sql.withHistory.all(canonicalId(id)) as WithHistoryRow[]);
        const newest = rows.at(-1);
        return newest && { submission: toSubmission(newest), history: rows.map(toHistoryEntry) };
      }),
    );
  }

  /** Oldest first. Empty for a submission that was never tracked. */
  history(submissionId: string): HistoryEntry[] {
    return this.getWithHistory([submissionId])[0]?.history ?? [];
  }

  /** Newest first, with the position to go on `before`; null at the end. */
  list(query: ListQuery): { submissions: Submission[]; nextBefore: number | null } {
    const { status = null, limit, before = Number.MAX_SAFE_INTEGER } = query;
    const statement = status === null ? this.#sql.list : this.#sql.listByStatus;
    const { page, hasMore } = this.#transactions.read(() =>
      takePage<SubmissionRow>(statement.iterate({ status, before, limit: limit + 1 }), limit),
    );
    return { submissions: page.map(toSubmission), nextBefore: hasMore ? (page.at(-1)?.id ?? null) : null };
  }

  /**
   * Those whose ids begin so, UUIDs in whatever case, in the order of the ids, with the id to continue `after`; null at the end.
   */
  findByPrefix({ prefix, limit, after = '' }: PrefixQuery): { submissions: Submission[]; nextAfter: string | null } {
    // "!" is the least character of an id and "~" the greatest.
    const rangeOf = (begin: string) => ({ from: after < begin ? begin : `${after}!`, end: `${begin}\x7f` });
    const lower = uuidPrefix(prefix);
    const { page, hasMore } = this.#transactions.snapshot(() => {
      const found = takePage<SubmissionRow>(
        this.#sql.findByPrefix.iterate({ ...rangeOf(prefix), limit: limit + 1 }),
        limit,
      );
      // Upper case comes before lower case, so these stand behind all of those.
      const rest = limit - found.page.length;
      if (lower === undefined || lower === prefix || found.hasMore) return found;
      const uuids = takePage<SubmissionRow>(this.#sql.findUuids.iterate({ ...rangeOf(lower), limit: rest + 1 }), rest);
      return { page: [...found.page, ...uuids.page], hasMore: uuids.hasMore };
    });
    return { submissions: page.map(toSubmission), nextAfter: hasMore ? (page.at(-1)?.submission_id ?? null) : null };
  }

  /** `outages`: what was found out already about how long which upstream has been out. */
  #track(requests: readonly TrackRequest[], now: number, outages: Map<string, number>): TrackResult {
    const known = requests.map((request) => this.#find(request.submissionId));
    for (const [index, { upstream, deadlineAt }] of requests.entries()) {
      const row = known[index];
      if (row && row.upstream !== upstream) return { kind: 'conflict', index, submission: toSubmission(row) };
      if (!row && deadlineAt <= now) return { kind: 'late', index };
    }
    const submissions = requests.map((request, index) => {
      const { submissionId, upstream } = request;
      const outageMs = outages.get(upstream) ?? this.#outageMs(upstream, now);
      outages.set(upstream, outageMs);
      const inserted = known[index] ? undefined : this.#insert(request, { now, outageMs });
      if (inserted) return { submission: inserted, isNew: true };
      // An id may stand twice in one batch: then the first of them made it known.
      const row = known[index] ?? this.#find(submissionId);
      if (row?.upstream !== upstream)
        throw new Error(`${submissionId} is to be tracked at the upstreams ${row?.upstream} and ${upstream}`);
      return { submission: toSubmission(row), isNew: false };
    });
    return { kind: 'tracked', submissions };
  }

  /**
   * By its id as it is given, else by its canonical form: a ledger of before schema 8 may have a UUID in several spellings, each
   * with a history of its own.
   */
  #find(submissionId: string): SubmissionRow | undefined {
    const found = this.#sql.find.get(submissionId) as SubmissionRow | undefined;
    if (found) return found;
    const canonical = canonicalId(submissionId);
    return canonical === submissionId ? undefined : (this.#sql.find.get(canonical) as SubmissionRow | undefined);
  }

  /** How long an upstream has been out until now, in total. */
  #outageMs(upstream: string, now: number): number {
    const outageMs = this.#sql.outageMs.get({ upstream, now }) as number | undefined;
    if (outageMs === undefined) throw new Error(`no upstream is named ${upstream}`);
    return outageMs;
  }

  /** Undefined: it is tracked already. */
  #insert(request: TrackRequest, { now, outageMs }: { now: number; outageMs: number }): Submission | undefined {
    const { submissionId, upstream, deadlineAt, graceEndsAt, stuckAt, metadata, callbackUrl } = request;
    const limits = [deadlineAt, graceEndsAt, stuckAt, outageMs];
    const told = [metadata && JSON.stringify(metadata), callbackUrl];
    const { changes, lastInsertRowid } = this.#sql.insert.run(submissionId, upstream, now, ...limits, ...told);
    if (changes === 0) return undefined;
    const submission: Submission = {
      submissionId,
      upstream,
      status: Status.tracking,
      watched: true,
      stuck: false,
      version: 1,
      polls: 0,
      polledAt: null,
      noResponseSince: null,
      notFoundMs: null,
      trackedAt: now,
      finalizedAt: null,
      deadlineAt,
      graceEndsAt,
      stuckAt,
      outageMsBefore: outageMs,
      metadata,
      callbackUrl,
      upstreamState: null,
      error: null,
      envelope: null,
    };
    this.#writer.insertFirstHistory(Number(lastInsertRowid), submission);
    return submission;
  }
}

/** An answer older than what is known changes nothing. */
function nothing({ watched, noResponseSince, notFoundMs }: Submission): TransitionResult {
  return { change: null, watched, becameStuck: false, noResponseSince, notFoundMs };
}

type WithHistoryRow = Omit<SubmissionRow, 'id' | 'ended_at'> & HistoryRow;

type WatchedRow = Pick<SubmissionRow, 'id' | 'submission_id' | 'tracked_at' | 'status' | 'finalized_at' | 'polled_at'>;

type UpstreamRow = {
  state: UpstreamRecord['state'];
  out_since: number | null;
  outage_ms: number;
  paused_since: number | null;
  paused_until: number | null;
  asked_until: number | null;
};

function prepareStatements(db: Database.Database) {
  return {
    find: db.prepare(`
      -- +?: but for the search of one row by one unique index, SQLite plans a statement anew for each value that is bound,
      -- as the value may decide how it is best found. That takes several times as long as finding it.
      ${SELECT_SUBMISSION} WHERE s.submission_id = +?`),
    outageMs: db
      .prepare(`
        -- What an upstream's outage clock shows now: what it showed before does not count for what is tracked from now on.
        SELECT ${OUTAGE_MS} FROM upstreams WHERE name = @upstream`)
      .pluck(),
    insert: db.prepare(`
      -- A newly tracked submission.
      INSERT INTO submissions (submission_id, upstream, status, watched, version, tracked_at, deadline_at, grace_ends_at,
                               stuck_at, outage_ms_before, metadata, callback_url)
      VALUES (?, ?, 'tracking', 1, 1, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (submission_id) DO NOTHING`),
    watched: db.prepare(`
      -- What the pacer is rebuilt from at start, in pieces.
      SELECT id, submission_id, tracked_at, status, finalized_at, polled_at
      FROM submissions WHERE upstream = ? AND watched = 1 AND id > ? ORDER BY id LIMIT ?`),
    watchedCounts: db.prepare('SELECT upstream, count(*) FROM submissions WHERE watched = 1 GROUP BY upstream'),
    withHistory: db.prepare(`
      -- A submission beside each of its changes: with the newest of them it is as it is now. Metadata is long, and stands
      -- beside that one only. +?: as in find.
      SELECT s.submission_id, s.upstream, s.watched, s.stuck, s.polls, s.polled_at, s.unanswered_since, s.not_found_ms, s.tracked_at,
             s.finalized_at, s.deadline_at, s.grace_ends_at, s.stuck_at, s.outage_ms_before, s.callback_url,
             iif(h.version = s.version, s.metadata, NULL) AS metadata,
             h.seq, h.version, h.at, h.status, h.previous_status, h.upstream_state, h.error, h.answer
      FROM submissions s JOIN history h ON h.submission = s.id WHERE s.submission_id = +? ORDER BY h.version`),
    list: db.prepare(`${SELECT_SUBMISSION} WHERE s.id < @before AND @status IS NULL ORDER BY s.id DESC LIMIT @limit`),
    listByStatus: db.prepare(
      `${SELECT_SUBMISSION} WHERE s.status = @status AND s.id < @before ORDER BY s.id DESC LIMIT @limit`,
    ),
    findByPrefix: db.prepare(`
      -- In the order of the index that keeps ids unique, so that a page costs a page, however many begin so.
      ${SELECT_SUBMISSION} WHERE s.submission_id >= @from AND s.submission_id < @end
      ORDER BY s.submission_id LIMIT @limit`),
    findUuids: db.prepare(`
      -- The same, but only UUIDs: of those the case does not matter.
      ${SELECT_SUBMISSION} WHERE s.submission_id >= @from AND s.submission_id < @end AND s.submission_id GLOB '${UUID_GLOB}'
      ORDER BY s.submission_id LIMIT @limit`),
    addUpstream: db.prepare('INSERT INTO upstreams (name) VALUES (?) ON CONFLICT DO NOTHING'),
    upstream: db.prepare(
      'SELECT state, out_since, outage_ms, paused_since, paused_until, asked_until FROM upstreams WHERE name = ?',
    ),
    setUpstream: db.prepare(`
      -- An outage begins or ends: a pause from before is part of the sum by then.
      UPDATE upstreams
      SET state = @state, out_since = @outSince, outage_ms = @outageMs, paused_since = NULL, paused_until = NULL
      WHERE name = @name`),
    setPause: db.prepare(`
      -- The outage clock of an upstream while no outage is under way.
      UPDATE upstreams SET outage_ms = @outageMs, paused_since = @pausedSince, paused_until = @pausedUntil
      WHERE name = @upstream`),
    shownId: db
      .prepare(`
        -- Among the newest finalized submissions of all upstreams, so that it takes no time where there are millions of others.
        SELECT submission_id
        FROM (SELECT upstream, submission_id FROM submissions WHERE status = 'finalized' ORDER BY id DESC LIMIT 1000)
        WHERE upstream = ? LIMIT 1`)
      .pluck(),
    asking: db.prepare('UPDATE upstreams SET asked_until = @until WHERE name = @upstream'),
    learned: db.prepare('SELECT value FROM meta WHERE key = ?'),
    setLearned: db.prepare(
      `-- what the pacer knows about an upstream, to go on with after a restart
      INSERT INTO meta (key, value) VALUES (@key, @learned) ON CONFLICT DO UPDATE SET value = excluded.value`,
    ),
  };
}
