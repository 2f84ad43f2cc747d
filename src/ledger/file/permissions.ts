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
import { codeOf, LedgerError } from './errors.ts';
import { APPLICATION_ID } from './migrations.ts';

const OF_OWNER = 0o600;
const OF_OTHERS = 0o077;
const BY_EVERYONE = 0o002;
/** As SQLite's file format has it. */
const HEADER_BYTES = 100;
const APPLICATION_ID_AT = 68;
const BESIDE = ['-wal', '-shm', '-journal', '.lock'];

/** Makes an empty file that only its owner may read and write, if there is none. Throws LedgerError where a symbolic link stands. */
export function createPrivateFile(path: string): void {
  refuseLink(path);
  try {
    closeSync(openSync(path, 'wx', OF_OWNER));
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

/** Throws LedgerError where a symbolic link stands beside the ledger: whoever may write its folder could aim writes elsewhere. */
export function refuseLinkedSideFiles(path: string): void {
  for (const suffix of BESIDE) refuseLink(`${path}${suffix}`);
}

/**
 * Throws LedgerError where the ledger belongs to another user in a folder in which everyone may make files: its owner could read
 * whatever is written to it.
 */
export function refuseForeignOwner(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found || found.uid === process.geteuid?.() || (statSync(dirname(path)).mode & BY_EVERYONE) === 0) return;
  const message = `${path} belongs to another user, and everyone may make files in its folder: give the ledger a folder of its own`;
  throw new LedgerError('read_only', message);
}

function refuseLink(path: string): void {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return;
  throw new LedgerError('read_only', `${path} is a symbolic link, and nothing is written through it: remove the link`);
}

/**
 * Takes from others what they may do with a ledger, the files beside it, and its folder if that holds nothing else; any other
 * file or folder stays as it is. Returns those that were changed: none of another owner, and no right is added. Before SQLite
 * opens them: to close a file ends its locks.
 */
export function tightenPermissions(path: string): string[] {
  const files = ['', ...BESIDE].map((suffix) => `${path}${suffix}`).filter(isOpenToOthers);
  const folders = [dirname(path)].filter((folder) => isOpenFolder(folder) && holdsOnly(folder, basename(path)));
  if (files.length + folders.length === 0 || !withDescriptor(path, isLedger)) return [];
  return [...files, ...folders].filter((file) => withDescriptor(file, takeFromOthers));
}

function isOpenFolder(path: string): boolean {
  return ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & OF_OTHERS) !== 0;
}

/** A folder with anything else in it may be shared on purpose. */
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

/** As the header of the file says; one whose first transaction is in its log alone has been made private. */
function isLedger(descriptor: number): boolean {
  const header = Buffer.alloc(HEADER_BYTES);
  readSync(descriptor, header);
  return header.readUInt32BE(APPLICATION_ID_AT) === APPLICATION_ID;
}

function takeFromOthers(descriptor: number): boolean {
  fchmodSync(descriptor, fstatSync(descriptor).mode & 0o700);
  return true;
}

/** False, too, for a file of another owner or on a file system that is read-only: the doctor tells of those. */
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
