import { accessSync, constants, existsSync, mkdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import Database from 'better-sqlite3';
import { damaged, guarded, LedgerError } from './errors.ts';
import { assertOwnSchema, isCurrent, migrate } from './migrations.ts';
import { createPrivateFile, refuseForeignOwner, refuseLinkedSideFiles, tightenPermissions } from './permissions.ts';

export type OpenOptions = {
  /** Path of the SQLite file; its folder is made if it doesn't exist. */
  file: string;
  now: number;
  /** The most pages (4 KiB each) the file may have: a full disk at will. */
  maxPages?: number;
};

export type OpenedDatabase = {
  db: Database.Database;
  /** Files that others could read or write until now. */
  tightened: string[];
  close: () => void;
};

/**
 * Opens the file for one server: locked against a second one, checked, migrated, and proved writable.
 * Throws LedgerError; a file that can't be used is left as it is.
 */
export function openDatabase(options: OpenOptions): OpenedDatabase {
  const { file } = options;
  return guarded(file, () => {
    const path = realPath(file);
    createFolder(path);
    refuseLinkedSideFiles(path);
    refuseForeignOwner(path);
    const tightened = tightenPermissions(path);
    const lock = lockFile(path);
    try {
      // It holds the secrets that webhooks are signed with. What SQLite puts beside it is made alike.
      createPrivateFile(path);
      const db = new Database(path);
      try {
        prepare(db, options);
      } catch (error) {
        db.close();
        throw error;
      }
      return {
        db,
        tightened,
        close: () => {
          db.close();
          lock.close();
        },
      };
    } catch (error) {
      lock.close();
      throw error;
    }
  });
}

/** How long a short command waits for a write of the server to end. */
const BUSY_MS = 5_000;

/**
 * Where the ledger is that a command works on, links resolved. Throws LedgerError if there is none: only a server and a restore
 * make one, since a command in another folder would work on an empty one without a word.
 */
export function existingLedgerPath(file: string): string {
  const path = realPath(file);
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0) return path;
  const advice =
    '`dawatch serve` makes one at its first start; --config <file> or DAWATCH_DATABASE names another place';
  throw new LedgerError('read_only', `there is no ledger at ${path}: ${advice}`);
}

/**
 * Opens the file for one short command, beside a server that may have it or without one. Only where no server has it is it
 * migrated. Throws LedgerError; a file that can't be used is left as it is.
 */
export function openBeside(options: Omit<OpenOptions, 'maxPages'>): { db: Database.Database; close: () => void } {
  const { file } = options;
  return guarded(file, () => {
    const path = existingLedgerPath(file);
    if (!isReady(path, file)) makeReady(options);
    const db = new Database(path, { fileMustExist: true, timeout: BUSY_MS });
    db.pragma('synchronous = FULL');
    db.pragma('foreign_keys = ON');
    return { db, close: () => db.close() };
  });
}

function isReady(path: string, file: string): boolean {
  const db = new Database(path, { fileMustExist: true, timeout: BUSY_MS });
  try {
    assertOwnSchema(db, file);
    return isCurrent(db);
  } finally {
    db.close();
  }
}

function makeReady(options: OpenOptions): void {
  try {
    openDatabase(options).close();
  } catch (error) {
    if (!(error instanceof LedgerError) || error.problem !== 'locked') throw error;
    const message = `${options.file} is in use by a server of another version of dawatch: stop it, or use its version`;
    throw new LedgerError('locked', message, error);
  }
}

/** The folder of a ledger, with those above it. One that is there may be used by others, too, and stays as it is. */
export function createFolder(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
}

/** One path per file: two names of it must not have a lock each. SQLite reads a few names as "in memory", but no absolute one. */
export function realPath(file: string): string {
  const path = resolve(file.trim());
  return existsSync(path) ? realpathSync(path) : path;
}

/** An exclusive transaction on a file beside the ledger: the system ends it with the process, however that dies. */
export function lockFile(path: string): Database.Database {
  const file = `${path}.lock`;
  createPrivateFile(file);
  const lock = new Database(file, { timeout: 0 });
  try {
    // On a file that it may only read, SQLite would begin without a lock and without a word.
    accessSync(file, constants.W_OK);
    lock.exec('BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    lock.close();
    throw error;
  }
}

function prepare(db: Database.Database, { file, now, maxPages }: OpenOptions): void {
  // These two come first: nothing may be written to a file that is not sound, or not ours.
  const verdict = db.pragma('quick_check(1)', { simple: true });
  if (verdict !== 'ok') throw damaged(file, String(verdict));
  assertOwnSchema(db, file);
  // So that free pages can be given back later; it is fixed with the first table.
  if (db.pragma('page_count', { simple: true }) === 0) db.pragma('auto_vacuum = INCREMENTAL');
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.pragma('foreign_keys = ON');
  db.pragma('journal_size_limit = 67108864');
  migrate(db);
  if (maxPages !== undefined) db.pragma(`max_page_count = ${maxPages}`);
  probe(db, now);
}

/** A real write, so that a read-only or full disk is known before anything is acknowledged. */
export function probe(db: Database.Database, now: number): void {
  db.prepare(
    "INSERT INTO meta (key, value) VALUES ('written_at', ?) ON CONFLICT DO UPDATE SET value = excluded.value",
  ).run(String(now));
}
