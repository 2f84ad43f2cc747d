import { chownSync, existsSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { damaged, isFailedSync, LedgerError, sqliteCodeOf } from './errors.ts';
import { copyToPrivateFile, createPrivateFile, linkOrCopy, syncWithFolder } from './files.ts';
import { assertOwnSchema } from './schema.ts';
import { assertUndamaged, openStaging } from './staging.ts';

/** Files beside a ledger: its last sync failed; a complete file that replaces it. */
const MARKER = '.sync-failed';
export const REPLACEMENT = '.replacement';

/** How long other programs may use the ledger, in milliseconds. */
const BUSY_MS = 1_000;

/**
 * Marks the ledger, so that the next process that writes copies it first. Returns the error for the
 * operator. The marker is not synced: a loss of power also removes the pages from memory that the
 * system could not write.
 */
export function markFailedSync(path: string, cause: unknown): LedgerError {
  const failed = `the disk failed while using ${path}, a sync returned an error`;
  let next = 'the next start copies the ledger to a new file';
  try {
    writeFileSync(`${path}${MARKER}`, `${cause}\n`, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (sqliteCodeOf(error) !== 'EEXIST')
      next = `${path}${MARKER} could not be written (${error}): restart the machine before you start dawatch again`;
  }
  return new LedgerError('io', `${failed}; ${next}`, cause);
}

/** Returns the result of `work`. Leaves the marker if a sync fails in it. */
export function markingFailedSync<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw isFailedSync(error) ? markFailedSync(path, error) : error;
  }
}

/** Whether the last sync of a ledger failed, or its replacement was interrupted. */
export function needsRecovery(path: string): boolean {
  return existsSync(`${path}${MARKER}`) || existsSync(`${path}${REPLACEMENT}`);
}

/**
 * Replaces a ledger that `needsRecovery` by a verified copy. After a failed sync, Linux counts
 * pages as written that it could not write, and returns them from memory until it drops them. Lost
 * pages are at the end of the log, where nothing was acknowledged, or in the file and also in the
 * log. SQLite reads the log from a copy, because it verifies a frame once, but may read it again
 * after Linux has dropped it. Must be called with the lock. Throws LedgerError and leaves the
 * ledger unchanged if it is damaged, the disk is full, or another program has it open.
 */
export function recoverLedger(path: string, file: string): void {
  const staging = openStaging(path);
  const original = join(dirname(staging.file), 'original');
  let db: Database.Database | undefined;
  try {
    if (existsSync(path)) {
      linkOrCopy(path, original);
      if (existsSync(`${path}-wal`)) copyToPrivateFile(`${path}-wal`, `${original}-wal`);
      db = new Database(original, { fileMustExist: true, timeout: BUSY_MS });
      const isReadable = lockAgainstOthers(db, file);
      if (!existsSync(`${path}${REPLACEMENT}`)) {
        if (!isReadable) throw damaged(file, 'its first page cannot be read');
        copyTo(staging.file, db, file);
        publishReplacement(staging.file, path);
      }
    }
    completeReplacement(path);
  } finally {
    // SQLite leaves a file without a name as it is. Otherwise its close would copy the log.
    rmSync(original, { force: true });
    db?.close();
    staging.close();
  }
}

/** `completeReplacement` then puts it in place. Both are on the disk when this returns. */
export function publishReplacement(complete: string, path: string): void {
  const owner = statSync(path, { throwIfNoEntry: false });
  // The server may run as another user than the command that recovers or restores.
  if (owner && process.geteuid?.() === 0) chownSync(complete, owner.uid, owner.gid);
  syncWithFolder(complete);
  renameSync(complete, `${path}${REPLACEMENT}`);
  syncWithFolder(`${path}${REPLACEMENT}`);
}

/** Puts the replacement in place and removes the marker. Resumes after a kill. */
export function completeReplacement(path: string): void {
  if (existsSync(`${path}${REPLACEMENT}`)) {
    // SQLite would apply the log of the old file to the new one.
    for (const suffix of ['-wal', '-shm']) rmSync(`${path}${suffix}`, { force: true });
    syncWithFolder(`${path}${REPLACEMENT}`);
    renameSync(`${path}${REPLACEMENT}`, path);
    syncWithFolder(path);
  }
  if (!existsSync(`${path}${MARKER}`)) return;
  rmSync(`${path}${MARKER}`);
  syncWithFolder(dirname(path));
}

/** Returns false if unreadable, as without its log. Throws LedgerError if another has it open. */
function lockAgainstOthers(db: Database.Database, file: string): boolean {
  try {
    db.pragma('locking_mode = EXCLUSIVE');
    db.pragma('schema_version');
    return true;
  } catch (error) {
    if (!sqliteCodeOf(error).startsWith('SQLITE_BUSY')) return false;
    const message = `the last sync of ${file} failed, and another program has it open, such as Litestream: stop that program, so that a copy can replace the ledger`;
    throw new LedgerError('locked', message, error);
  }
}

function copyTo(target: string, db: Database.Database, file: string): void {
  assertOwnSchema(db, file);
  createPrivateFile(target);
  db.prepare('VACUUM INTO ?').run(target);
  const copy = new Database(target);
  try {
    copy.pragma('journal_mode = WAL');
    // A row that breaks a constraint stops nothing else, as at each start.
    copy.pragma('ignore_check_constraints = ON');
    assertUndamaged(copy, file);
  } finally {
    copy.close();
  }
}
