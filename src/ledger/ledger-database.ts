import type Database from 'better-sqlite3';
import { guarded, isFailedSync, sqliteCodeOf, toLedgerError } from './errors.ts';
import type { LogSync } from './log-sync.ts';
import { markFailedSync } from './recovery.ts';

/**
 * The text of a statement, or the strings of a tagged template. The values of the template are
 * bound as parameters.
 */
type Sql = string | TemplateStringsArray;

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
  readonly #sync: LogSync | undefined;
  #isInSnapshot = false;
  /** Whether the current commit must be synced to the disk. */
  #isSynced = true;
  /**
   * How long statements usually wait for a lock, in milliseconds, while another program has locked
   * the ledger; otherwise undefined.
   */
  #busyMs: number | undefined;

  /**
   * `sync`: syncs the commits of the connection to the disk; undefined: the connection itself syncs
   * each commit.
   */
  constructor(connection: Database.Database, file: string, sync?: LogSync) {
    this.connection = connection;
    this.file = file;
    this.#sync = sync;
    this.#transaction = connection.transaction((work: () => unknown) => work());
  }

  /**
   * Calls `listener` after each transaction, committed or rolled back, with its duration in
   * milliseconds.
   */
  onEnd(listener: (committed: boolean, durationMs: number) => void): void {
    this.#endListeners.push(listener);
  }

  /**
   * Runs `work` in a transaction: when this returns, its changes are committed, and survive a crash
   * of the process; when `whenDurable` resolves, they survive a power failure. None of them is kept
   * if this throws. If a transaction is in progress, `work` joins it and is committed or rolled
   * back with it. Throws inside a snapshot.
   */
  transaction<T>(work: () => T): T {
    if (this.#isInSnapshot) throw new Error('nothing can be written inside a snapshot');
    if (this.connection.inTransaction) return work();
    const startedAt = performance.now();
    let committed = false;
    try {
      const result = this.#guarded(() => this.#transaction.immediate(work) as T);
      committed = true;
      if (this.#isSynced) this.#sync?.committed();
      else this.#sync?.copyLog();
      return result;
    } finally {
      const durationMs = performance.now() - startedAt;
      for (const listener of this.#endListeners) throwLater(() => listener(committed, durationMs));
    }
  }

  /**
   * Runs `work` in a transaction that is not synced to the disk. A crash of the process does not
   * undo it; a power failure can. For work that is repeated if it is lost.
   */
  unsyncedTransaction<T>(work: () => T): T {
    if (this.connection.inTransaction) return this.transaction(work);
    this.#isSynced = false;
    try {
      return this.transaction(work);
    } finally {
      this.#isSynced = true;
    }
  }

  /**
   * Resolves when all commits so far are on the disk; undefined if they are already. An
   * acknowledgement of a commit must not leave the process before. Rejects with LedgerError if the
   * disk failed; the process then ends.
   */
  whenDurable(): Promise<void> | undefined {
    return this.#sync?.whenDurable();
  }

  /** Duration of the sync in progress so far, in milliseconds; 0 if there is none. */
  get syncingMs(): number {
    const since = this.#sync?.pendingSince;
    return since === undefined ? 0 : performance.now() - since;
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
    if (!this.connection.inTransaction) this.#sync?.committed();
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
   * Runs what may sync a file: a commit, which syncs the beginning of a log that begins again. A
   * failed sync ends the process.
   */
  #guarded<T>(work: () => T): T {
    return guarded(this.file, () => {
      try {
        const result = work();
        if (this.#busyMs !== undefined) this.#unlocked(this.#busyMs);
        return result;
      } catch (error) {
        if (sqliteCodeOf(error).startsWith('SQLITE_BUSY')) this.#locked();
        if (!isFailedSync(error)) throw error;
        throw this.#sync?.fail(error) ?? markFailedSync(this.connection.name, error);
      }
    });
  }

  /**
   * Nothing else can run while SQLite waits for a lock. After a wait in vain, callers retry from
   * the event loop, and the next attempts do not wait.
   */
  #locked(): void {
    this.#busyMs ??= Number(this.connection.pragma('busy_timeout', { simple: true }));
    this.connection.pragma('busy_timeout = 0');
  }

  #unlocked(busyMs: number): void {
    this.connection.pragma(`busy_timeout = ${busyMs}`);
    this.#busyMs = undefined;
  }

  #statement(sql: Sql, prepared = this.#statements): Database.Statement {
    const known = prepared.get(sql);
    if (known) return known;
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
  readonly #database: LedgerDatabase;
  readonly #listeners = new Set<(changes: readonly Change[]) => void>();
  readonly #durableListeners = new Set<(changes: readonly Change[]) => void>();
  #changes: Change[] = [];
  /** Committed changes that are not on the disk yet, oldest first. */
  readonly #unsynced: (readonly Change[])[] = [];

  constructor(database: LedgerDatabase) {
    this.#database = database;
    database.onEnd((committed) => {
      if (this.#changes.length === 0) return;
      const changes = this.#changes;
      this.#changes = [];
      if (committed) this.#committed(changes);
    });
  }

  /** Committed changes that are not on the disk yet, oldest commit first. */
  get unsynced(): readonly (readonly Change[])[] {
    return this.#unsynced;
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

  /**
   * Calls `listener` once the changes of a commit are on the disk. Returns a function that removes
   * it.
   */
  onDurable(listener: (changes: readonly Change[]) => void): () => void {
    this.#durableListeners.add(listener);
    return () => this.#durableListeners.delete(listener);
  }

  #committed(changes: readonly Change[]): void {
    for (const listener of this.#listeners) listener(changes);
    const durable = this.#database.whenDurable();
    if (!durable) {
      this.#notifyDurable(changes);
      return;
    }
    this.#unsynced.push(changes);
    // After a failed sync the process ends.
    void durable.then(
      () => throwLater(() => this.#notifyDurable(this.#unsynced.shift() ?? [])),
      () => undefined,
    );
  }

  #notifyDurable(changes: readonly Change[]): void {
    for (const listener of this.#durableListeners) listener(changes);
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
