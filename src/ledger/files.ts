import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  readSync,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { LedgerError, sqliteCodeOf } from './errors.ts';

const OF_OWNER = 0o600;
const OF_OTHERS = 0o077;
const SIDE_FILES = ['-wal', '-shm', '-journal'];
const BESIDE = [
  ...SIDE_FILES,
  ...['.sync-failed', '.replacement'],
  ...['.lock', '.primary'].flatMap((file) => [file, ...SIDE_FILES.map((side) => file + side)]),
];

/**
 * Creates an empty file with access for its owner only, if there is no file. Throws LedgerError for
 * a symbolic link.
 */
export function createPrivateFile(path: string): void {
  refuseLink(path);
  try {
    closeSync(openSync(path, 'wx', OF_OWNER));
  } catch (error) {
    if (sqliteCodeOf(error) !== 'EEXIST') throw error;
  }
}

/**
 * Throws LedgerError if a side file is a symbolic link, by which another user could redirect
 * writes.
 */
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

/**
 * Removes the permissions of other users for a ledger and its side files, such as those of a
 * restored replica. Skips files of other owners.
 */
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

/**
 * Copies a file to a new one that only its owner may read. The copy is on the disk when this
 * returns.
 */
export function copyToPrivateFile(source: string, target: string): void {
  copyFileSync(source, target, constants.COPYFILE_EXCL);
  chmodSync(target, OF_OWNER);
  syncWithFolder(target);
}

/** Gives a file a second name, or copies it if the file system has no links. */
export function linkOrCopy(path: string, second: string): void {
  try {
    linkSync(path, second);
  } catch {
    copyToPrivateFile(path, second);
  }
}

/** Returns whether the file begins with the header of SQLite. */
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
