import { isFinal, STATUSES, type Status } from '../../domain/submission.ts';
import type { LedgerDatabase } from '../file/ledger-database.ts';

/** How many submissions have which status: counted once, then kept by what is committed, because there may be millions. */
export class StatusCounts {
  readonly #transactions: LedgerDatabase;
  /** Undefined: nobody asked yet. */
  #counts: Record<Status, number> | undefined;
  readonly #onEnded: ((status: Status) => void)[] = [];
  #moves: { from: Status | null; to: Status | null }[] = [];

  constructor(transactions: LedgerDatabase) {
    this.#transactions = transactions;
    transactions.onEnd((committed) => this.#end(committed));
  }

  /** Inside a transaction: a submission has another status. `from` null: it is new; `to` null: it is gone. */
  moved(from: Status | null, to: Status | null): void {
    if (this.#counts && from !== to) this.#moves.push({ from, to });
  }

  /** Calls `listener` after every commit that ended submissions, once for each, with how it ended. Only from the first `get` on. */
  onEnded(listener: (status: Status) => void): void {
    this.#onEnded.push(listener);
  }

  get(): Record<Status, number> {
    this.#counts ??= this.#count();
    return { ...this.#counts };
  }

  #count(): Record<Status, number> {
    const { db } = this.#transactions;
    const rows = this.#transactions.read(() =>
      db.prepare('SELECT status, count(*) FROM submissions GROUP BY status').raw().all(),
    );
    const none = STATUSES.map((status): [Status, number] => [status, 0]);
    return Object.fromEntries([...none, ...(rows as [Status, number][])]) as Record<Status, number>;
  }

  #end(committed: boolean): void {
    const moves = this.#moves;
    this.#moves = [];
    if (!committed || !this.#counts) return;
    for (const { from, to } of moves) {
      if (from !== null) this.#counts[from] -= 1;
      if (to !== null) this.#counts[to] += 1;
      if (to !== null && isFinal(to)) for (const listener of this.#onEnded) listener(to);
    }
  }
}
