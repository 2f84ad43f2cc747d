import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import type { Machine } from './machine.ts';

/** Read once a minute or more often: `pragma` would prepare a statement each time. */
const READ_OFTEN = ['auto_vacuum', 'page_count', 'freelist_count'];

class Killed extends Error {}

type DiskDeps = { machine: Machine; note: (occurrence: string) => void };

/** Whether an error only shows that a killed process went on until its promises had settled. */
export function isOfKilledProcess(error: unknown): boolean {
  return (
    String(error).includes('Killed') || String(error).includes('database connection is not open')
  );
}

/**
 * The disk of the machine: a folder in memory. It observes the connections of the process to its
 * SQLite files, so that a kill can stop them before or after any commit, a full disk rejects
 * commits, and a sync can fail after one. test/faults/power-loss tests the loss of power.
 */
export class Disk {
  readonly folder: string;
  isFull = false;
  /** The number of commits until the disk is full. */
  #fullIn = Number.POSITIVE_INFINITY;
  /** Whether the sync of the next commit fails. */
  failsNextSync = false;
  readonly #connections = new Set<Database.Database>();

  constructor(folder: string, { machine, note }: DiskDeps) {
    this.folder = folder;
    const { prototype } = Database;
    const { transaction, exec, pragma } = prototype;
    const connections = this.#connections;
    prototype.exec = function (sql) {
      connections.add(this);
      return exec.call(this, sql);
    };
    prototype.pragma = function (source, options) {
      connections.add(this);
      // System calls for locks and syncs would take most of the time, and have no effect on a disk
      // in memory with one user.
      if (source === 'journal_mode = WAL') pragma.call(this, 'locking_mode = EXCLUSIVE');
      if (READ_OFTEN.includes(source)) return readPragma(this, source);
      return pragma.call(this, source.replace(/^synchronous = .*/, 'synchronous = OFF'), options);
    };
    const beforeCommit = () => {
      if (!machine.survives()) throw new Killed('Killed before a commit');
      if (this.#fullIn-- <= 0) this.isFull = true;
      if (this.isFull) throw new Database.SqliteError('database or disk is full', 'SQLITE_FULL');
    };
    const afterCommit = () => {
      if (!machine.survives()) throw new Killed('Killed after a commit');
      if (this.failsNextSync) {
        this.failsNextSync = false;
        note('failed syncs');
        throw new Database.SqliteError('disk I/O error', 'SQLITE_IOERR_FSYNC');
      }
    };
    prototype.transaction = function (
      this: Database.Database,
      work: (...args: never[]) => unknown,
    ) {
      let isWrite = false;
      const guarded = transaction.call(this, (...args: never[]) => {
        const result = work(...args);
        if (isWrite) beforeCommit();
        return result;
      });
      const immediate = (...args: never[]) => {
        isWrite = true;
        try {
          if (!machine.isAlive) throw new Killed('Killed before a transaction');
          const result = guarded.immediate(...args);
          afterCommit();
          return result;
        } finally {
          isWrite = false;
        }
      };
      return Object.assign((...args: never[]) => guarded(...args), {
        immediate,
        deferred: guarded.deferred,
      });
    } as typeof transaction;
    const statement = Object.getPrototypeOf(
      new Database(':memory:').prepare('SELECT 1'),
    ) as Database.Statement;
    const { run } = statement;
    statement.run = function (this: Database.Statement, ...args) {
      // Within a transaction, only the commit counts.
      if (this.database.inTransaction || this.source.startsWith('BEGIN'))
        return run.apply(this, args);
      beforeCommit();
      const result = run.apply(this, args);
      afterCommit();
      return result;
    };
    machine.onKilled(() => this.#crash());
  }

  /** Keeps the files as the process left them. Closing a connection would complete them. */
  #crash(): void {
    const image = `${this.folder}.image`;
    copyFiles(this.folder, image);
    this.close();
    rmSync(this.folder, { recursive: true });
    copyFiles(image, this.folder);
    rmSync(image, { recursive: true });
  }

  /** Closes the connections of the process. */
  close(): void {
    for (const connection of this.#connections) connection.close();
    this.#connections.clear();
  }

  /** Becomes full with one of the next commits: the first one if 0. */
  fillAfter(commits: number): void {
    this.#fullIn = commits;
  }

  /** Has room again. */
  empty(): void {
    this.isFull = false;
    this.#fullIn = Number.POSITIVE_INFINITY;
  }

  /** Returns the connection of the process to a file; undefined: it is not open. */
  connection(file: string): Database.Database | undefined {
    const path = join(this.folder, file);
    return [...this.#connections].find(({ name, open }) => open && name === path);
  }

  /** Creates the lock file of a ledger with a known id, which SQLite would choose at random. */
  install(file: string): void {
    const path = join(this.folder, `${file}.lock`);
    mkdirSync(dirname(path), { recursive: true });
    const lock = new Database(path);
    lock.exec(`CREATE TABLE installation AS SELECT 'simulation' AS id`);
    lock.close();
    this.#connections.delete(lock);
  }
}

const readings = new WeakMap<Database.Database, Map<string, Database.Statement>>();

function readPragma(connection: Database.Database, source: string): unknown {
  const statements = readings.get(connection) ?? new Map<string, Database.Statement>();
  readings.set(connection, statements);
  const statement = statements.get(source) ?? connection.prepare(`PRAGMA ${source}`).pluck();
  statements.set(source, statement);
  return statement.get();
}

function copyFiles(from: string, to: string): void {
  for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const target = join(to, entry.parentPath.slice(from.length), entry.name);
    mkdirSync(dirname(target), { recursive: true });
    // The index of the log is rebuilt after a crash.
    if (!entry.name.endsWith('-shm')) copyFileSync(join(entry.parentPath, entry.name), target);
  }
  if (!existsSync(to)) mkdirSync(to, { recursive: true });
}
