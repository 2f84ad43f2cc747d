import { statSync } from 'node:fs';
import type Database from 'better-sqlite3';
import { isTime, nearestTime } from '../../domain/stored.ts';
import type { Status, Submission } from '../../domain/submission.ts';
import type { LedgerDatabase } from '../file/ledger-database.ts';
import type { StatusCounts } from '../submissions/status-counts.ts';
import { costLimitedCache } from './cost-limited-cache.ts';

export type OpenSubmission = Pick<Submission, 'submissionId' | 'upstream' | 'status' | 'trackedAt'>;

/** Deliveries that wait, and dead letters. */
export type DeliveryCounts = { waiting: number; dead: number; oldestWaitingAt: number | null };

/** Figures about everything in the ledger. None of them takes long, however much that is. Throws LedgerError. */
export class LedgerStats {
  readonly #transactions: LedgerDatabase;
  readonly #counts: StatusCounts;
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #countDeliveries: () => { waiting: number; dead: number };

  constructor(transactions: LedgerDatabase, counts: StatusCounts) {
    this.#transactions = transactions;
    this.#counts = counts;
    this.#sql = prepareStatements(transactions.db);
    this.#countDeliveries = costLimitedCache(
      () => this.#sql.countDeliveries.get() as { waiting: number; dead: number },
    );
  }

  /** Calls `listener` after every commit with how long the transaction took, from its beginning until it was on the disk. */
  onCommitted(listener: (durationMs: number) => void): void {
    this.#transactions.onEnd((committed, durationMs) => {
      if (committed) listener(durationMs);
    });
  }

  /** Calls `listener` after every commit that ended submissions, once for each, with how it ended. */
  onEnded(listener: (status: Status) => void): void {
    // What is not counted yet has no moves.
    this.#counts.get();
    this.#counts.onEnded(listener);
  }

  /** The sizes of the file and of the write-ahead log beside it; 0 for one that is not there. */
  bytes(): { database: number; wal: number } {
    const { name } = this.#transactions.db;
    const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
    return { database: sizeOf(name), wal: sizeOf(`${name}-wal`) };
  }

  submissionsByStatus(): Record<Status, number> {
    return this.#counts.get();
  }

  /** Those that have been open for longest, the oldest first. */
  oldestOpen(limit: number): OpenSubmission[] {
    const rows = this.#transactions.read(() => this.#sql.oldestOpen.all({ limit })) as OpenSubmission[];
    return rows.map((row) => (isTime(row.trackedAt) ? row : { ...row, trackedAt: nearestTime(row.trackedAt) }));
  }

  deliveries(): DeliveryCounts {
    return this.#transactions.read(() => {
      const at = this.#sql.oldestWaiting.get() as number | null;
      return { ...this.#countDeliveries(), oldestWaitingAt: at === null ? null : nearestTime(at) };
    });
  }

  /** What became final since then, the newest first, at most `limit`; `polls` as they are now. */
  *finalizedSince(since: number, limit: number): Iterable<{ at: number; trackedAt: number; polls: number }> {
    const from = this.#transactions.read(() => this.#firstEventSince(since));
    const rows = this.#transactions.read(() => this.#sql.finalized.iterate({ from, since, limit }));
    yield* rows as Iterable<{ at: number; trackedAt: number; polls: number }>;
  }

  /** Events are numbered in the order of their times, so the first one since then is found without an index of times. */
  #firstEventSince(since: number): number {
    let [before, after] = this.#sql.eventRange.get() as [number, number];
    while (before < after) {
      const middle = Math.floor((before + after) / 2);
      const [seq, at] = this.#sql.eventFrom.get(middle) as [number, number];
      if (at >= since) after = middle;
      else before = seq + 1;
    }
    return before;
  }
}

function prepareStatements(db: Database.Database) {
  const oldestOf = (status: string) =>
    `SELECT * FROM (SELECT submission_id AS submissionId, upstream, status, tracked_at AS trackedAt FROM submissions
                    WHERE status = '${status}' ORDER BY id LIMIT @limit)`;
  return {
    oldestOpen: db.prepare(`
      -- The first of each open status, in the order of tracking.
      ${['tracking', 'pending', 'failing'].map(oldestOf).join(' UNION ALL ')}
      ORDER BY trackedAt LIMIT @limit`),
    countDeliveries: db.prepare(`
      -- From the indexes alone.
      SELECT (SELECT count(*) FROM deliveries WHERE state = 'waiting') AS waiting,
             (SELECT count(*) FROM deliveries WHERE state = 'dead') AS dead`),
    oldestWaiting: db
      .prepare("SELECT min(coalesce(replayed_at, created_at)) FROM deliveries WHERE state = 'waiting'")
      .pluck(),
    eventRange: db
      .prepare(`
        -- From the first event to behind the newest one.
        SELECT coalesce(min(seq), 0), coalesce(max(seq), -1) + 1 FROM outbox`)
      .raw(),
    eventFrom: db.prepare('SELECT seq, at FROM outbox WHERE seq >= ? ORDER BY seq LIMIT 1').raw(),
    finalized: db.prepare(`
      -- What became final lately, from the log of events.
      SELECT o.at, s.tracked_at AS trackedAt, s.polls FROM outbox o JOIN submissions s ON s.id = o.submission
      WHERE o.seq >= @from AND o.at >= @since AND o.type = 'submission.finalized' ORDER BY o.seq DESC LIMIT @limit`),
  };
}
