import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { LedgerError, sqliteCodeOf } from './errors.ts';

const OF_OWNER = 0o600;
const OF_OTHERS = 0o077;
const SIDE_FILES = ['-wal', '-shm', '-journal'];
const BESIDE = [
  ...SIDE_FILES,
  ...['.sync-failed', '.replacement'],
  ...['.lock', '.primary'].flatMap((file) => [file, ...SIDE_FILES.map((side) => file + side)]),
];

/** With access for its owner only. Throws LedgerError for a symbolic link. */
export function createPrivateFile(path: string): void {
  refuseLink(path);
  try {
    closeSync(openSync(path, 'wx', OF_OWNER));
  } catch (error) {
    if (sqliteCodeOf(error) !== 'EEXIST') throw error;
  }
}

/**
 * Throws LedgerError for a linked side file, by which another user could redirect writes, and for a
 * file of another user, such as that of an earlier process. Throws for a read-only file, which
 * SQLite would not lock.
 */
export function refuseUnusableFiles(path: string): void {
  for (const file of ['', ...BESIDE].map((suffix) => `${path}${suffix}`)) {
    refuseLink(file);
    const stats = statSync(file, { throwIfNoEntry: false });
    if (!stats) continue;
    try {
      accessSync(file, constants.R_OK | constants.W_OK);
    } catch (error) {
      if (stats.uid === process.geteuid?.()) throw error;
      const message = `${file} belongs to another user, ${stats.uid}: run dawatch as its owner, or change the owner of all files of the ledger`;
      throw new LedgerError('read_only', message, error);
    }
  }
}

/** Returns device and inode; undefined if there is no file of this name. */
export function identityOf(file: string): string | undefined {
  const stats = statSync(file, { throwIfNoEntry: false });
  return stats && `${stats.dev}:${stats.ino}`;
}

/** Returns the name that a ledger keeps when another one takes its place. */
export function replacedName(path: string, now: number): string {
  return `${path}.replaced-${new Date(now).toISOString().replaceAll(/[-:]/g, '')}`;
}

/** Returns the copies with such names, the newest last. */
export function replacedFiles(path: string): string[] {
  const prefix = basename(`${path}.replaced-`);
  if (!existsSync(dirname(path))) return [];
  return readdirSync(dirname(path))
    .filter((name) => name.startsWith(prefix) && name.endsWith('Z'))
    .sort()
    .map((name) => join(dirname(path), name));
}

function refuseLink(path: string): void {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return;
  throw new LedgerError(
    'read_only',
    `${path} is a symbolic link, which dawatch does not write through: remove the link`,
  );
}

/** Such as those of a restored replica. Skips files of other owners. */
export function tightenPermissions(path: string): void {
  for (const file of ['', ...BESIDE].map((suffix) => `${path}${suffix}`)) {
    const mode = lstatSync(file, { throwIfNoEntry: false })?.mode ?? 0;
    if ((mode & OF_OTHERS) === 0) continue;
    try {
      chmodSync(file, mode & 0o700);
    } catch (error) {
      if (sqliteCodeOf(error) !== 'EPERM') throw error;
    }
  }
}

/** Only its owner may read the copy, which is on the disk when this returns. */
export function copyToPrivateFile(source: string, target: string): void {
  copyFileSync(source, target, constants.COPYFILE_EXCL);
  chmodSync(target, OF_OWNER);
  syncWithFolder(target);
}

export function linkOrCopy(path: string, second: string): void {
  try {
    linkSync(path, second);
  } catch {
    copyToPrivateFile(path, second);
  }
}

export function syncWithFolder(file: string): void {
  for (const path of [file, dirname(file)]) {
    const descriptor = openSync(path, 'r');
    try {
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
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

/** Commands read the file for a moment, which must not keep a server from starting. */
const READ_MS = 250;

/** The random id in a lock file, which identifies this place of the ledger. */
export const INSTALLATION = 'SELECT id FROM installation';

/** The system releases the lock when the process ends. A new lock file gets a random id. */
export function lockFile(path: string): Database.Database {
  const file = `${path}.lock`;
  createPrivateFile(file);
  const lock = new Database(file, { timeout: READ_MS });
  try {
    lock.exec('CREATE TABLE IF NOT EXISTS installation AS SELECT lower(hex(randomblob(16))) AS id');
    lock.exec('BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    lock.close();
    throw error;
  }
}

/**
 * Closes a connection without changing its log. SQLite copies and deletes the log with the last
 * connection, so the last one here is read-only.
 */
export function closeUnchanged(db: Database.Database): void {
  if ((statSync(`${db.name}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0) {
    db.close();
    return;
  }
  const last = new Database(db.name, { readonly: true });
  try {
    // Takes the lock that keeps the other connection from being the last one.
    last.pragma('schema_version');
  } catch {
    // A damaged file is locked nevertheless.
  }
  db.close();
  last.close();
}
