import { CommittedChanges, type LedgerDatabase } from '../ledger/ledger-database.ts';
import { isFinal, STATUSES, type Status } from './submission.ts';

/**
 * The number of submissions by status: counted at the first use, because there may be millions,
 * then updated by each commit.
 */
export class StatusCounts {
  readonly #db: LedgerDatabase;
  readonly #moves: CommittedChanges<{ from: Status | null; to: Status | null }>;
  /** Undefined until the first use. */
  #counts: Record<Status, number> | undefined;

  constructor(database: LedgerDatabase) {
    this.#db = database;
    this.#moves = new CommittedChanges(database);
    this.#moves.onCommitted((moves) => {
      const counts = this.#counts;
      if (!counts) return;
      for (const { from, to } of moves) {
        if (from !== null) counts[from] -= 1;
        if (to !== null) counts[to] += 1;
      }
    });
  }

  /**
   * Notes a change of status inside a transaction. `from` null: a new submission; `to` null: a
   * deleted one.
   */
  moved(from: Status | null, to: Status | null): void {
    if (this.#counts && from !== to) this.#moves.add({ from, to });
  }

  /**
   * Calls `listener` after a commit, once for each submission that ended, with its final status.
   */
  onEnded(listener: (status: Status) => void): void {
    // Moves are only noted once the submissions have been counted.
    this.get();
    this.#moves.onCommitted((moves) => {
      for (const { to } of moves) if (to !== null && isFinal(to)) listener(to);
    });
  }

  get(): Record<Status, number> {
    this.#counts ??= this.#count();
    return { ...this.#counts };
  }

  #count(): Record<Status, number> {
    const rows = this.#db.rows<{ status: Status; count: number }>(
      'SELECT status, count(*) AS count FROM submissions GROUP BY status',
    );
    const counts = Object.fromEntries(STATUSES.map((status) => [status, 0])) as Record<
      Status,
      number
    >;
    for (const { status, count } of rows) counts[status] = count;
    return counts;
  }
}
