import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  statSync,
} from 'node:fs';
import { basename, dirname } from 'node:path';
import { LedgerError, sqliteCodeOf } from './errors.ts';
import { APPLICATION_ID } from './schema.ts';

const OF_OWNER = 0o600;
const OF_OTHERS = 0o077;
const BY_EVERYONE = 0o002;
/** The header of a SQLite file: its size, and the position of the application id. */
const HEADER_BYTES = 100;
const APPLICATION_ID_AT = 68;
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

/**
 * Throws LedgerError if the ledger belongs to another user and everyone may create files in its
 * folder: then its owner may have planted it, and could read everything that is written to it.
 */
export function refuseForeignOwner(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (
    !found ||
    found.uid === process.geteuid?.() ||
    (statSync(dirname(path)).mode & BY_EVERYONE) === 0
  )
    return;
  const message = `${path} belongs to another user, and everyone may create files in its folder: use a separate folder for the ledger`;
  throw new LedgerError('read_only', message);
}

function refuseLink(path: string): void {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return;
  throw new LedgerError(
    'read_only',
    `${path} is a symbolic link, which dawatch does not write through: remove the link`,
  );
}

/**
 * Removes the permissions of other users for a ledger, its side files, and its folder if that holds
 * nothing else. Adds no permission, and skips files of other owners. Returns the changed paths.
 * Must run before SQLite opens the files, because closing a file releases its locks.
 */
export function tightenPermissions(path: string): string[] {
  const files = ['', ...BESIDE].map((suffix) => `${path}${suffix}`).filter(isOpenToOthers);
  const folders = [dirname(path)].filter(
    (folder) => isOpenFolder(folder) && holdsOnly(folder, basename(path)),
  );
  if (files.length + folders.length === 0 || !withDescriptor(path, isLedger)) return [];
  return [...files, ...folders].filter((file) => withDescriptor(file, takeFromOthers));
}

function isOpenFolder(path: string): boolean {
  return ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & OF_OTHERS) !== 0;
}

/** A folder with other files may be shared on purpose. */
function holdsOnly(folder: string, ledger: string): boolean {
  try {
    return readdirSync(folder).every(
      (name) => name === ledger || BESIDE.some((suffix) => name === `${ledger}${suffix}`),
    );
  } catch {
    return false;
  }
}

function isOpenToOthers(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found?.isFile() === true && (found.mode & OF_OTHERS) !== 0;
}

/**
 * Reads the application id in the header. A ledger whose first transaction is only in its log was
 * created private.
 */
function isLedger(descriptor: number): boolean {
  const header = Buffer.alloc(HEADER_BYTES);
  readSync(descriptor, header);
  return header.readUInt32BE(APPLICATION_ID_AT) === APPLICATION_ID;
}

function takeFromOthers(descriptor: number): boolean {
  fchmodSync(descriptor, fstatSync(descriptor).mode & 0o700);
  return true;
}

/**
 * Also returns false if the file cannot be opened or changed. `dawatch doctor` reports such files.
 */
function withDescriptor(path: string, work: (descriptor: number) => boolean): boolean {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    return work(descriptor);
  } catch {
    return false;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
