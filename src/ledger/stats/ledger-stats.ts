import { statSync } from 'node:fs';
import { isTime, nearestTime } from '../../domain/stored.ts';
import type { Status, Submission } from '../../domain/submission.ts';
import type { LedgerDatabase } from '../file/ledger-database.ts';
import type { StatusCounts } from '../submissions/status-counts.ts';
import { costLimitedCache } from './cost-limited-cache.ts';

type OpenSubmission = Pick<Submission, 'submissionId' | 'upstream' | 'status' | 'trackedAt'>;

/** Waiting deliveries and dead letters. */
type DeliveryCounts = { waiting: number; dead: number; oldestWaitingAt: number | null };

/** Statistics of the whole ledger, each read in a short time even from a large ledger. Throws LedgerError. */
export class LedgerStats {
  readonly #db: LedgerDatabase;
  readonly #counts: StatusCounts;
  readonly #countDeliveries: () => { waiting: number; dead: number };

  constructor(database: LedgerDatabase, counts: StatusCounts) {
    this.#db = database;
    this.#counts = counts;
    const countIn = (state: string) => `(SELECT count(*) FROM deliveries WHERE state = '${state}')`;
    const sql = `SELECT ${countIn('waiting')} AS waiting, ${countIn('dead')} AS dead`;
    this.#countDeliveries = costLimitedCache(() => database.row(sql) as { waiting: number; dead: number });
  }

  /** Calls `listener` after every commit with the duration of the transaction in milliseconds. */
  onCommitted(listener: (durationMs: number) => void): void {
    this.#db.onEnd((committed, durationMs) => {
      if (committed) listener(durationMs);
    });
  }

  /** Calls `listener` after a commit, once for each submission that ended, with its final status. */
  onEnded(listener: (status: Status) => void): void {
    this.#counts.onEnded(listener);
  }

  /** Returns the sizes of the file and of its write-ahead log; 0 for a missing file. */
  bytes(): { database: number; wal: number } {
    const { name } = this.#db.connection;
    const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
    return { database: sizeOf(name), wal: sizeOf(`${name}-wal`) };
  }

  submissionsByStatus(): Record<Status, number> {
    return this.#counts.get();
  }

  /** Returns the open submissions that were tracked first, oldest first. */
  oldestOpen(limit: number): OpenSubmission[] {
    const oldestOf = (status: string) =>
      `SELECT * FROM (SELECT submission_id AS submissionId, upstream, status, tracked_at AS trackedAt
                      FROM submissions WHERE status = '${status}' ORDER BY id LIMIT @limit)`;
    const rows = this.#db.rows<OpenSubmission>(
      `${['tracking', 'pending', 'failing'].map(oldestOf).join(' UNION ALL ')} ORDER BY trackedAt LIMIT @limit`,
      { limit },
    );
    return rows.map((row) => (isTime(row.trackedAt) ? row : { ...row, trackedAt: nearestTime(row.trackedAt) }));
  }

  deliveries(): DeliveryCounts {
    const at = this.#db.value<number | null>(
      "SELECT min(coalesce(replayed_at, created_at)) FROM deliveries WHERE state = 'waiting'",
    );
    return { ...this.#countDeliveries(), oldestWaitingAt: typeof at === 'number' ? nearestTime(at) : null };
  }

  /** Yields the submissions that were finalized at `since` or later, newest first, at most `limit`; `polls` as of now. */
  finalizedSince(since: number, limit: number): Iterable<{ at: number; trackedAt: number; polls: number }> {
    return this.#db.iterate`
      SELECT o.at, s.tracked_at AS trackedAt, s.polls FROM outbox o JOIN submissions s ON s.id = o.submission
      WHERE o.seq >= ${this.#firstEventSince(since)} AND o.at >= ${since} AND o.type = 'submission.finalized'
      ORDER BY o.seq DESC LIMIT ${limit}`;
  }

  /** Events are numbered in the order of their times: a binary search finds the first one without an index of times. */
  #firstEventSince(since: number): number {
    const range = this.#db.row<{ first: number; end: number }>(
      'SELECT coalesce(min(seq), 0) AS first, coalesce(max(seq), -1) + 1 AS end FROM outbox',
    );
    let { first: low, end: high } = range ?? { first: 0, end: 0 };
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const event = this.#db.row<{ seq: number; at: number }>`
        SELECT seq, at FROM outbox WHERE seq >= ${middle} ORDER BY seq LIMIT 1`;
      if (!event || event.at >= since) high = middle;
      else low = event.seq + 1;
    }
    return low;
  }
}
