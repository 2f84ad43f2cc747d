import type Database from 'better-sqlite3';
import { guarded, isFailedSync, LedgerError, toLedgerError } from './errors.ts';
import { markFailedSync } from './recovery.ts';

/**
 * The text of a statement, or the strings of a tagged template. The values of the template are
 * bound as parameters.
 */
type Sql = string | TemplateStringsArray;

/** Writes a row, to detect a read-only or full disk before anything is acknowledged. */
export const PROBE =
  "INSERT INTO meta (key, value) VALUES ('written_at', ?) ON CONFLICT DO UPDATE SET value = excluded.value";

/** 4 MiB, the default of SQLite. */
const CHECKPOINT_PAGES = 1_000;

/**
 * The connection to a ledger file: runs SQL statements, and is the only place where transactions
 * begin.
 *
 * Methods that run a statement are used as template tags, or called with a text and its parameters.
 * Statements are prepared at their first use and cached for the life of the connection, so a text
 * must be a constant or one of a few variants. Methods that run statements throw LedgerError for
 * errors of SQLite and the file system.
 *
 * SQLite prepares a statement again at each execution if a parameter alone is its limit, or if a
 * column equals a parameter and the rows are sorted. `LIMIT ? + 0` and `= (SELECT ?)` avoid that in
 * statements that run often.
 */
export class LedgerDatabase {
  readonly connection: Database.Database;
  readonly file: string;
  readonly #transaction: Database.Transaction<(work: () => unknown) => unknown>;
  readonly #statements = new Map<Sql, Database.Statement>();
  /** Those that return the first column only. */
  readonly #valueStatements = new Map<Sql, Database.Statement>();
  readonly #endListeners: ((committed: boolean, durationMs: number) => void)[] = [];
  readonly #onSyncFailed: (error: unknown) => void;
  readonly #logState: Database.Statement<[], [busy: number, pages: number, copied: number]>;
  #isInSnapshot = false;
  /** Whether the newest write failed because the ledger could not be written. */
  #isFailing = false;

  /**
   * `onSyncFailed`: called if a commit could not be synced; must end the process. Default: the
   * error is only thrown.
   */
  constructor(
    connection: Database.Database,
    file: string,
    onSyncFailed: (error: unknown) => void = () => undefined,
  ) {
    this.connection = connection;
    this.file = file;
    this.#onSyncFailed = onSyncFailed;
    this.#transaction = connection.transaction((work: () => unknown) => work());
    connection.pragma('wal_autocheckpoint = 0');
    // `pragma` would return objects with new properties each time.
    this.#logState = connection
      .prepare<[], [busy: number, pages: number, copied: number]>('PRAGMA wal_checkpoint(NOOP)')
      .raw();
  }

  /**
   * Calls `listener` after each transaction, committed or rolled back, with its duration in
   * milliseconds.
   */
  onEnd(listener: (committed: boolean, durationMs: number) => void): void {
    this.#endListeners.push(listener);
  }

  /**
   * Runs `work` in a transaction: when this returns, its changes are on the disk. None of them is
   * kept if this throws. If a transaction is in progress, `work` joins it and is committed or
   * rolled back with it. Throws inside a snapshot.
   */
  transaction<T>(work: () => T): T {
    if (this.#isInSnapshot) throw new Error('nothing can be written inside a snapshot');
    if (this.connection.inTransaction) return work();
    const startedAt = performance.now();
    let committed = false;
    try {
      const result = this.#guarded(() => this.#transaction.immediate(work) as T);
      committed = true;
      this.#checkpoint();
      return result;
    } finally {
      const durationMs = performance.now() - startedAt;
      for (const listener of this.#endListeners) throwLater(() => listener(committed, durationMs));
    }
  }

  /**
   * Runs several reads as of one moment, with one lock of the file instead of one per statement.
   */
  snapshot<T>(work: () => T): T {
    if (this.connection.inTransaction) return work();
    this.#isInSnapshot = true;
    try {
      return guarded(this.file, () => this.#transaction.deferred(work) as T);
    } finally {
      this.#isInSnapshot = false;
    }
  }

  /** Runs a statement that returns no rows. */
  run(sql: Sql, ...parameters: unknown[]): Database.RunResult {
    const result = this.#guarded(() => this.#statement(sql).run(...parameters));
    if (!this.connection.inTransaction) this.#checkpoint();
    return result;
  }

  /** Returns the first row; undefined if there is none. */
  row<Row>(sql: Sql, ...parameters: unknown[]): Row | undefined {
    return guarded(this.file, () => this.#statement(sql).get(...parameters) as Row | undefined);
  }

  rows<Row>(sql: Sql, ...parameters: unknown[]): Row[] {
    return guarded(this.file, () => this.#statement(sql).all(...parameters) as Row[]);
  }

  /** Yields rows one by one. The connection cannot write until the iteration ends. */
  *iterate<Row>(sql: Sql, ...parameters: unknown[]): Generator<Row, void> {
    try {
      yield* this.#statement(sql).iterate(...parameters) as IterableIterator<Row>;
    } catch (error) {
      throw toLedgerError(this.file, error);
    }
  }

  /** Returns the first column of the first row; undefined if there is no row. */
  value<Value>(sql: Sql, ...parameters: unknown[]): Value | undefined {
    return guarded(
      this.file,
      () => this.#statement(sql, this.#valueStatements).get(...parameters) as Value | undefined,
    );
  }

  /** Returns the first column of every row. */
  values<Value>(sql: Sql, ...parameters: unknown[]): Value[] {
    return guarded(
      this.file,
      () => this.#statement(sql, this.#valueStatements).all(...parameters) as Value[],
    );
  }

  /**
   * Copies a long log to the ledger, as the automatic checkpoints of SQLite, which ignore errors:
   * pages that an earlier checkpoint copied would be lost after a failed sync.
   */
  #checkpoint(): void {
    try {
      const [, pages, copied] = this.#logState.get() ?? [0, 0, 0];
      if (pages - copied >= CHECKPOINT_PAGES)
        this.#guarded(() => this.connection.pragma('wal_checkpoint(PASSIVE)'));
    } catch {
      // The commit is on the disk. A failed sync ends the process; after any other error, such as a
      // full disk, the next commit repeats the checkpoint.
    }
  }

  /**
   * Whether the newest write succeeded. After a failed one, tries another: callers wait for this
   * result before they write again.
   */
  isWritable(now: number): boolean {
    if (!this.#isFailing) return true;
    try {
      this.probe(now);
    } catch {}
    return !this.#isFailing;
  }

  /** Writes an unused value. Throws LedgerError if the ledger cannot be written. */
  probe(now: number): void {
    this.run(PROBE, String(now));
  }

  /** Runs what may commit. A failed sync is final; see isFailedSync. */
  #guarded<T>(work: () => T): T {
    return guarded(this.file, () => {
      try {
        const result = work();
        this.#isFailing = false;
        return result;
      } catch (error) {
        this.#isFailing = toLedgerError(this.file, error) instanceof LedgerError;
        if (!isFailedSync(error)) throw error;
        const failure = markFailedSync(this.connection.name, error);
        this.#onSyncFailed(failure);
        throw failure;
      }
    });
  }

  #statement(sql: Sql, prepared = this.#statements): Database.Statement {
    const cached = prepared.get(sql);
    if (cached) return cached;
    const statement = this.connection.prepare(typeof sql === 'string' ? sql : sql.join('?'));
    if (prepared === this.#valueStatements) statement.pluck();
    prepared.set(sql, statement);
    return statement;
  }
}

/**
 * Collects the changes of a transaction and reports them to listeners once it is committed. A
 * rollback discards them.
 */
export class CommittedChanges<Change> {
  readonly #listeners = new Set<(changes: readonly Change[]) => void>();
  #changes: Change[] = [];

  constructor(database: LedgerDatabase) {
    database.onEnd((committed) => {
      if (this.#changes.length === 0) return;
      const changes = this.#changes;
      this.#changes = [];
      if (committed) for (const listener of this.#listeners) listener(changes);
    });
  }

  /** Must be called inside a transaction. */
  add(change: Change): void {
    this.#changes.push(change);
  }

  /** Returns a function that removes the listener. */
  onCommitted(listener: (changes: readonly Change[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/**
 * Rethrows an error of a listener after the transaction has ended. Such an error is a defect and
 * ends the process.
 */
function throwLater(work: () => void): void {
  try {
    work();
  } catch (error) {
    setImmediate(() => {
      throw error;
    });
  }
}
