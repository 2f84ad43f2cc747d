import { existsSync, realpathSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import Database from 'better-sqlite3';
import { damaged, guarded, LedgerError } from './errors.ts';
import {
  closeUnchanged,
  createPrivateFile,
  INSTALLATION,
  identityOf,
  refuseUnusableFiles,
  replacedFiles,
  tightenPermissions,
} from './files.ts';
import { LedgerDatabase, PROBE } from './ledger-database.ts';
import { markingFailedSync, needsRecovery, REPLACEMENT, recoverLedger } from './recovery.ts';
import { assertOwnSchema, migrate, schemaOf } from './schema.ts';
import { lockLedger } from './staging.ts';

export type OpenOptions = {
  /** Path of the SQLite file. A missing folder is created. */
  file: string;
  now: number;
  /** The most pages (4 KiB each) that the file may have. Tests simulate a full disk with it. */
  maxPages?: number;
  /** Called before the ledger is copied because its last sync failed. */
  onRecovery?: (() => void) | undefined;
};

/** A log that begins again is shortened to this size. A larger one is, or was, kept by a reader. */
const MAX_LOG_BYTES = 64 * 1024 * 1024;

type OpenedDatabase = {
  db: Database.Database;
  /** The random id of the lock file, which identifies this place of the ledger. */
  installation: string;
  close(): void;
};

/** Locks, checks, migrates and tests. Throws LedgerError; leaves an unusable file unchanged. */
export function openDatabase(options: OpenOptions): OpenedDatabase {
  const { file } = options;
  return guarded(file, () => {
    const path = realPath(file);
    refuseUnsafe(path);
    const lock = lockLedger(path, file);
    try {
      if (needsRecovery(path)) {
        options.onRecovery?.();
        recoverLedger(path, file);
      }
      // The file holds signing secrets. SQLite creates its side files with the same permissions.
      createPrivateFile(path);
      const db = new Database(path);
      closingOnError(
        () => closeUnchanged(db),
        () => {
          check(db, file);
          tightenPermissions(path);
          markingFailedSync(path, () => prepare(db, options));
        },
      );
      return {
        db,
        installation: lock.prepare(INSTALLATION).pluck().get() as string,
        close: () => {
          closeLedger(db);
          lock.close();
        },
      };
    } catch (error) {
      lock.close();
      throw error;
    }
  });
}

/** Moves the log into the file, except after a failed sync: the next start needs it. */
function closeLedger(db: Database.Database): void {
  if (needsRecovery(db.name)) closeUnchanged(db);
  else db.close();
}

/** How long a command waits for a transaction of the server, in milliseconds. */
const BUSY_MS = 5_000;
/** How long a server, which can do nothing else meanwhile, waits for that of a command. */
const SERVER_BUSY_MS = 50;

/**
 * Links resolved. Throws LedgerError without a ledger: a wrong folder must not get an empty one.
 */
function existingLedgerPath(file: string): string {
  const path = realPath(file);
  refuseUnsafe(path);
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0) return path;
  const advice =
    '`dawatch serve` creates one at its first start; --config <file> or DAWATCH_DATABASE selects another path';
  throw new LedgerError('read_only', `there is no ledger at ${path}: ${advice}`);
}

/** Migrates only without a server. Throws LedgerError; leaves an unusable file unchanged. */
export function openBeside(options: Omit<OpenOptions, 'maxPages'>): {
  database: LedgerDatabase;
  close: () => void;
} {
  const { file } = options;
  return guarded(file, () => {
    const path = existingLedgerPath(file);
    refuseUnusableFiles(path);
    if (needsRecovery(path) || !isMigrated(path, file)) openDatabase(options).close();
    const db = new Database(path, { fileMustExist: true, timeout: BUSY_MS });
    // The first read opens the log.
    db.pragma('schema_version');
    db.pragma('synchronous = FULL');
    db.pragma('foreign_keys = ON');
    return {
      database: new LedgerDatabase(db, file),
      close: () => guarded(file, () => closeLedger(db)),
    };
  });
}

/** Reads as of one moment, with or without a running server. Throws LedgerError. */
export function openSnapshot(file: string): Database.Database {
  return guarded(file, () => {
    const path = existingLedgerPath(file);
    if (existsSync(`${path}${REPLACEMENT}`))
      throw new LedgerError(
        'locked',
        `${file} is being replaced: start the server, then try again`,
      );
    const db = new Database(path, { readonly: true, fileMustExist: true });
    try {
      // The first read begins the transaction.
      db.exec('BEGIN; SELECT count(*) FROM sqlite_schema');
      return db;
    } catch (error) {
      db.close();
      throw error;
    }
  });
}

function isMigrated(path: string, file: string): boolean {
  const db = new Database(path, { fileMustExist: true, timeout: BUSY_MS });
  try {
    assertOwnSchema(db, file);
    const { found, needed } = schemaOf(db);
    return found === needed;
  } finally {
    closeUnchanged(db);
  }
}

/**
 * Throws LedgerError for a device or a pipe, because a start would change its permissions; for a
 * file with a second name, because a server could use that with another log; and where a ledger was
 * removed.
 */
export function refuseUnsafe(path: string): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats && !stats.isFile() && !stats.isDirectory())
    throw new LedgerError('read_only', `${path} is not a regular file`);
  if (needsRecovery(path)) return;
  if (!stats?.size) refuseLost(path);
  else if (stats.isFile() && stats.nlink > 1) refuseLinked(path);
}

function refuseLost(path: string): void {
  const traces = [`${path}.primary`, ...replacedFiles(path)];
  const left = traces.findLast((file) => existsSync(file));
  if (left === undefined) return;
  const message = `there is no ledger at ${path}, but ${left} is left of one: restore a backup or a copy, or confirm an empty ledger with \`mv ${left} ${left}.old\``;
  throw new LedgerError('read_only', message);
}

function refuseLinked(path: string): void {
  // A restore that was killed may have given it this name.
  if (replacedFiles(path).some((file) => identityOf(file) === identityOf(path))) return;
  const message = `${path} has a second name, a hard link: find it with \`find / -xdev -samefile ${path}\`, and remove it`;
  throw new LedgerError('read_only', message);
}

/** Links resolved, so that two names share one lock. Absolute, so never an in-memory database. */
export function realPath(file: string): string {
  const path = resolve(file.trim());
  return existsSync(path) ? realpathSync(path) : path;
}

export function closingOnError<T>(close: () => void, work: () => T): T {
  try {
    return work();
  } catch (error) {
    close();
    throw error;
  }
}

function check(db: Database.Database, file: string): void {
  assertOwnSchema(db, file);
  // Nothing else may be written before this check. A row that breaks a constraint is not searched
  // here: it stops nothing else.
  db.pragma('ignore_check_constraints = ON');
  const verdict = db.pragma('quick_check(1)', { simple: true });
  db.pragma('ignore_check_constraints = OFF');
  if (verdict !== 'ok') throw damaged(file, String(verdict));
}

function prepare(db: Database.Database, { now, maxPages }: OpenOptions): void {
  // Allows free pages to be returned to the file system. Can only be set before the first table
  // exists.
  if (db.pragma('page_count', { simple: true }) === 0) db.pragma('auto_vacuum = INCREMENTAL');
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.pragma(`journal_size_limit = ${MAX_LOG_BYTES}`);
  db.pragma('foreign_keys = ON');
  migrate(db);
  if (maxPages !== undefined) db.pragma(`max_page_count = ${maxPages}`);
  db.prepare(PROBE).run(String(now));
  db.pragma(`busy_timeout = ${SERVER_BUSY_MS}`);
  // Begins with an empty log, unless another connection reads it.
  db.pragma('wal_checkpoint(TRUNCATE)');
}

/** Events up to @through may be missing. The recorded number never decreases. */
export const RECORD_MISSING_EVENTS = `
  INSERT INTO meta (key, value) VALUES ('events_missing_through', CAST(@through AS INTEGER))
  ON CONFLICT DO UPDATE SET value = max(CAST(value AS INTEGER), CAST(excluded.value AS INTEGER))`;
