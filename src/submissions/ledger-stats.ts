import { statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { isTime, nearestTime } from '../lib/json.ts';
import type { Status, Submission } from './submission.ts';
import type { StatusCounts } from './submission-queries.ts';

type OpenSubmission = Pick<Submission, 'submissionId' | 'upstream' | 'status' | 'trackedAt'>;

/** `failing`: of the waiting ones, those with a failed attempt. */
type DeliveryCounts = {
  waiting: number;
  failing: number;
  dead: number;
  oldestWaitingAt: number | null;
};

export type LedgerCounts = {
  submissions: Record<Status, number>;
  oldestOpen: OpenSubmission[];
  deliveries: DeliveryCounts;
};

/**
 * Statistics of the whole ledger, each read in a short time even from a large ledger. Throws
 * LedgerError.
 */
export class LedgerStats {
  readonly #db: LedgerDatabase;
  readonly #counts: StatusCounts;

  constructor(database: LedgerDatabase, counts: StatusCounts) {
    this.#db = database;
    this.#counts = counts;
  }

  /** Calls `listener` after every commit with the duration of the transaction in milliseconds. */
  onCommitted(listener: (durationMs: number) => void): void {
    this.#db.onEnd((committed, durationMs) => {
      if (committed) listener(durationMs);
    });
  }

  /**
   * Calls `listener` after a commit, once for each submission that ended, with its final status.
   */
  onEnded(listener: (status: Status) => void): void {
    this.#counts.onEnded(listener);
  }

  /** Returns the sizes of the file and of its write-ahead log; 0 for a missing file. */
  bytes(): { database: number; wal: number } {
    return { database: sizeOf(this.#db.connection.name), wal: this.walBytes() };
  }

  /** Returns the size of the write-ahead log; 0 for a missing file. */
  walBytes(): number {
    return sizeOf(`${this.#db.connection.name}-wal`);
  }

  /** Returns the free space and the size of the file system; undefined if they cannot be read. */
  disk(): { freeBytes: number; sizeBytes: number } | undefined {
    try {
      const { bavail, blocks, bsize } = statfsSync(dirname(this.#db.connection.name));
      return { freeBytes: bavail * bsize, sizeBytes: blocks * bsize };
    } catch {
      return undefined;
    }
  }

  /**
   * Returns the current counts, in constant time regardless of the number of submissions, and the
   * oldest open submissions.
   */
  counts(oldest: number): LedgerCounts {
    return {
      submissions: this.#counts.get(),
      oldestOpen: this.oldestOpen(oldest),
      deliveries: this.deliveries(),
    };
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
    return rows.map((row) =>
      isTime(row.trackedAt) ? row : { ...row, trackedAt: nearestTime(row.trackedAt) },
    );
  }

  deliveries(): DeliveryCounts {
    const { oldestWaitingAt: at, ...counts } = this.#db.row(COUNT_DELIVERIES) as DeliveryCounts;
    return { ...counts, oldestWaitingAt: typeof at === 'number' ? nearestTime(at) : null };
  }
}

const COUNT_DELIVERIES = `
  SELECT
    (SELECT count(*) FROM deliveries WHERE state = 'waiting') AS waiting,
    (SELECT count(*) FROM deliveries INDEXED BY deliveries_failing
     WHERE state = 'waiting' AND attempts > 0) AS failing,
    (SELECT count(*) FROM deliveries WHERE state = 'dead') AS dead,
    (SELECT min(coalesce(replayed_at, created_at)) FROM deliveries WHERE state = 'waiting') AS oldestWaitingAt`;

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
