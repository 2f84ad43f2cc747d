import type Database from 'better-sqlite3';
import { guarded, isFailedSync, LedgerError, toLedgerError } from './errors.ts';
import { identityOf } from './files.ts';
import { markFailedSync } from './recovery.ts';

/** The values of a tagged template are bound as parameters. */
type Sql = string | TemplateStringsArray;

/** Writes a row, to detect a read-only or full disk before anything is acknowledged. */
export const PROBE =
  "INSERT INTO meta (key, value) VALUES ('written_at', ?) ON CONFLICT DO UPDATE SET value = excluded.value";

/** 4 MiB, the default of SQLite. */
const CHECKPOINT_PAGES = 1_000;

/**
 * Runs SQL, and is the only place where transactions begin. Methods are template tags, or get a
 * text and its parameters. Statements stay cached, so a text must have few variants. Throws
 * LedgerError for errors of SQLite and files. `LIMIT ? + 0` and `= (SELECT ?)` keep SQLite from
 * preparing a statement again at each execution.
 */
export class LedgerDatabase {
  readonly connection: Database.Database;
  readonly file: string;
  readonly #transaction: Database.Transaction<(work: () => unknown) => unknown>;
  readonly #statements = new Map<Sql, Database.Statement>();
  readonly #valueStatements = new Map<Sql, Database.Statement>();
  readonly #endListeners: ((committed: boolean, durationMs: number) => void)[] = [];
  readonly #onSyncFailed: (error: unknown) => void;
  readonly #logState: Database.Statement<[], [busy: number, pages: number, copied: number]>;
  /** What the names of the ledger, its log and its lock meant when they were opened. */
  readonly #identities: (string | undefined)[];
  #isInSnapshot = false;
  #isFailing = false;

  /** `onSyncFailed`: a commit could not be synced; must end the process. Default: only throws. */
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
    this.#identities = this.#currentIdentities();
  }

  /** Calls `listener` after each commit or rollback with its duration in milliseconds. */
  onEnd(listener: (committed: boolean, durationMs: number) => void): void {
    this.#endListeners.push(listener);
  }

  /**
   * On return the changes are on the disk; a throw discards them. Joins a transaction in progress.
   * Throws inside a snapshot.
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

  /** Several reads as of one moment, with one lock of the file. */
  snapshot<T>(work: () => T): T {
    if (this.connection.inTransaction) return work();
    this.#isInSnapshot = true;
    try {
      return guarded(this.file, () => this.#transaction.deferred(work) as T);
    } finally {
      this.#isInSnapshot = false;
    }
  }

  run(sql: Sql, ...parameters: unknown[]): Database.RunResult {
    const result = this.#guarded(() => this.#statement(sql).run(...parameters));
    if (!this.connection.inTransaction) this.#checkpoint();
    return result;
  }

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

  /** Automatic checkpoints of SQLite ignore errors: a failed sync would lose pages. */
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

  /** After a failed write, tries another, because callers wait for this result. */
  isWritable(now: number): boolean {
    try {
      if (this.#isFailing || this.detached()) this.probe(now);
      return true;
    } catch {
      return false;
    }
  }

  /**
   * Returns why nothing may be written; undefined if it may. Data in a file without a name is lost
   * with the process. If the lock file is another one, another server may write.
   */
  detached(): LedgerError | undefined {
    const [ledger, log, lock] = this.#currentIdentities();
    const { name } = this.connection;
    if (ledger !== this.#identities[0] || log !== this.#identities[1])
      return new LedgerError(
        'read_only',
        `${name} or its log was removed or replaced, and nothing is written any more: stop the server, then restore the copy that it saves beside the file`,
      );
    if (lock === undefined || lock === this.#identities[2]) return undefined;
    return new LedgerError(
      'locked',
      `another dawatch uses ${name}, because ${name}.lock was removed: stop one of the two servers`,
    );
  }

  #currentIdentities(): (string | undefined)[] {
    return ['', '-wal', '.lock'].map((suffix) => identityOf(`${this.connection.name}${suffix}`));
  }

  /** Writes an unused value. Throws LedgerError if the ledger cannot be written. */
  probe(now: number): void {
    this.run(PROBE, String(now));
  }

  /** Runs what may commit. A failed sync is final; see isFailedSync. */
  #guarded<T>(work: () => T): T {
    return guarded(this.file, () => {
      try {
        const detached = this.connection.inTransaction ? undefined : this.detached();
        if (detached) throw detached;
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

/** Reports changes to listeners once they are committed. A rollback discards them. */
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

  onCommitted(listener: (changes: readonly Change[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** After the transaction has ended. Such an error is a defect and ends the process. */
function throwLater(work: () => void): void {
  try {
    work();
  } catch (error) {
    setImmediate(() => {
      throw error;
    });
  }
}
