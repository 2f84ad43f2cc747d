import { accessSync, constants, existsSync } from 'node:fs';
import Database from 'better-sqlite3';
import { sqliteCodeOf } from './errors.ts';
import { createPrivateFile } from './files.ts';

/** Commands read the file for a moment, which must not keep a server from starting. */
const READ_MS = 250;

/** Reads the random id of a lock file. */
export const INSTALLATION = 'SELECT id FROM installation';

/**
 * Locks a ledger by a transaction on a file beside it. The operating system releases the lock when
 * the process ends. A new lock file gets a random id.
 */
export function lockFile(path: string): Database.Database {
  const file = `${path}.lock`;
  createPrivateFile(file);
  const lock = new Database(file, { timeout: READ_MS });
  try {
    // SQLite silently takes no lock on a read-only file.
    accessSync(file, constants.W_OK);
    lock.exec('CREATE TABLE IF NOT EXISTS installation AS SELECT lower(hex(randomblob(16))) AS id');
    lock.exec('BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    lock.close();
    throw error;
  }
}

/**
 * Returns the id in the lock file of a ledger; undefined if no server has opened the ledger in this
 * place. Throws the errors of SQLite: SQLITE_BUSY if a server has the ledger.
 */
export function installationOf(path: string): string | undefined {
  if (!existsSync(`${path}.lock`)) return undefined;
  // Not read-only: then SQLite could not roll back the journal of a process that was killed while
  // it wrote the id.
  const lock = new Database(`${path}.lock`, { timeout: 0 });
  try {
    const hasId =
      lock
        .prepare("SELECT count(*) FROM sqlite_schema WHERE name = 'installation'")
        .pluck()
        .get() === 1;
    return hasId ? (lock.prepare(INSTALLATION).pluck().get() as string) : undefined;
  } finally {
    lock.close();
  }
}

/** Whether a server, or a restore, uses the ledger. Another user's ledger counts as used. */
export function isServed(path: string): boolean {
  try {
    installationOf(path);
    return false;
  } catch (error) {
    if (/^SQLITE_(?:BUSY|CANTOPEN|READONLY)/.test(sqliteCodeOf(error))) return true;
    throw error;
  }
}
