import { existsSync, mkdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import Database from 'better-sqlite3';
import { damaged, guarded, guardedLock, LedgerError, sqliteCodeOf } from './errors.ts';
import {
  closeUnchanged,
  createPrivateFile,
  INSTALLATION,
  lockFile,
  refuseLinkedSideFiles,
  refuseSpecialFile,
  syncWithFolder,
  tightenPermissions,
} from './files.ts';
import { LedgerDatabase, PROBE } from './ledger-database.ts';
import {
  markingFailedSync,
  needsRecovery,
  REPLACEMENT,
  recoverBeside,
  recoverLedger,
} from './recovery.ts';
import { assertOwnSchema, migrate, schemaOf } from './schema.ts';

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
    refuseSpecialFile(path);
    createFolder(path);
    refuseLinkedSideFiles(path);
    const lock = guardedLock(file, () => lockFile(path));
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
    recoverBeside(path, file);
    if (!isMigrated(path, file)) migrateOffline(options);
    const { ino } = statSync(path);
    const db = new Database(path, { fileMustExist: true, timeout: BUSY_MS });
    // The first read opens the log.
    db.pragma('schema_version');
    if (statSync(path).ino !== ino) {
      db.close();
      throw new LedgerError('locked', `${path} was replaced meanwhile; try again`);
    }
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

function migrateOffline(options: OpenOptions): void {
  try {
    openDatabase(options).close();
  } catch (error) {
    if (!(error instanceof LedgerError) || error.problem !== 'locked') throw error;
    const message = `${options.file} is in use by a server of another version of dawatch: stop that server, or use its version`;
    throw new LedgerError('locked', message, error);
  }
}

/** Existing folders keep their permissions, because they may be shared. */
export function createFolder(path: string): void {
  const first = mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  // A loss of power must not remove a new folder, and the ledger with it.
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    try {
      syncWithFolder(folder);
    } catch (error) {
      // The parent may be unreadable for this user, and some file systems cannot sync folders.
      if (!['EACCES', 'EINVAL'].includes(sqliteCodeOf(error))) throw error;
    }
    if (folder === first) return;
  }
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
  // Begins with an empty log, unless another connection reads it.
  withoutWaiting(db, () => db.pragma('wal_checkpoint(TRUNCATE)'));
  db.pragma(`busy_timeout = ${SERVER_BUSY_MS}`);
}

function withoutWaiting<T>(db: Database.Database, work: () => T): T {
  const waitMs = Number(db.pragma('busy_timeout', { simple: true }));
  db.pragma('busy_timeout = 0');
  try {
    return work();
  } finally {
    db.pragma(`busy_timeout = ${waitMs}`);
  }
}

/** Events up to @through may be missing. The recorded number never decreases. */
export const RECORD_MISSING_EVENTS = `
  INSERT INTO meta (key, value) VALUES ('events_missing_through', CAST(@through AS INTEGER))
  ON CONFLICT DO UPDATE SET value = max(CAST(value AS INTEGER), CAST(excluded.value AS INTEGER))`;
