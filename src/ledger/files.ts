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
  openSync,
  readSync,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
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

/** Throws LedgerError for a linked side file, by which another user could redirect writes. */
export function refuseLinkedSideFiles(path: string): void {
  for (const suffix of BESIDE) refuseLink(`${path}${suffix}`);
}

/** Throws LedgerError for a device or a pipe, whose permissions a start would change. */
export function refuseSpecialFile(path: string): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats || stats.isFile() || stats.isDirectory()) return;
  throw new LedgerError('read_only', `${path} is not a regular file`);
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

export function isSqliteFile(file: string): boolean {
  const descriptor = openSync(file, 'r');
  try {
    const magic = Buffer.alloc(MAGIC.length);
    return readSync(descriptor, magic) === MAGIC.length && magic.equals(MAGIC);
  } finally {
    closeSync(descriptor);
  }
}

const MAGIC = Buffer.from('SQLite format 3\0');

/** Writes the content of a file and its folder entry to the disk. */
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

/** Commands read the file for a moment, which must not keep a server from starting. */
const READ_MS = 250;

export const INSTALLATION = 'SELECT id FROM installation';

/** The system releases the lock when the process ends. A new lock file gets a random id. */
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

/** Returns undefined if no server opened it here. Throws SQLITE_BUSY while one has the ledger. */
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

/**
 * Closes a connection, and leaves its log as it is. The last connection of a file copies the log to
 * it and deletes the log, so the one that is closed last here cannot write.
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
