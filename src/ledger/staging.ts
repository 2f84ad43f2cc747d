import {
  existsSync,
  linkSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { LedgerError, sqliteCodeOf } from './errors.ts';
import { syncWithFolder } from './files.ts';
import { lockFile } from './lock.ts';

const NO_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'];

/** A private folder with one incomplete file. */
export type Staging = ReturnType<typeof openStaging>;

/**
 * Creates a folder beside `target` that only this user may enter, so that no other user can
 * redirect writes by a link. Removes what a killed process left for the same target. Throws
 * LedgerError `locked` while another process writes the same target; other errors are those of the
 * file system.
 */
export function openStaging(target: string) {
  const prefix = `${target}.partial-`;
  for (const name of readdirSync(dirname(target))) {
    const path = join(dirname(target), name);
    if (name.startsWith(basename(prefix)) && isOwn(path)) removeLeftover(path, target);
  }
  const folder = mkdtempSync(prefix);
  const file = join(folder, 'file');
  const lock = lockFile(file);
  return {
    file,
    /** Removes the folder with its content. */
    close(): void {
      lock.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Moves a complete file to `target` and writes both to the disk. Throws LedgerError if `target`
 * exists.
 */
export function publish(file: string, target: string): void {
  syncWithFolder(file);
  try {
    linkSync(file, target);
  } catch (error) {
    if (!NO_LINKS.includes(sqliteCodeOf(error)))
      throw sqliteCodeOf(error) === 'EEXIST' ? taken(target) : error;
    refuseTaken(target);
    renameSync(file, target);
  }
  syncWithFolder(target);
}

/** Throws LedgerError if `target` exists, even as a broken link. */
export function refuseTaken(target: string): void {
  if (lstatSync(target, { throwIfNoEntry: false })) throw taken(target);
}

function taken(target: string): LedgerError {
  return new LedgerError('read_only', `${target} already exists and was left unchanged`);
}

/** Whether this user has created it: the folder of a backup may be open to others. */
function isOwn(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.uid === process.geteuid?.();
}

/**
 * Removes a staging folder unless a process is writing there, which holds the lock. Without a lock
 * file it is new or empty.
 */
function removeLeftover(folder: string, target: string): void {
  const file = join(folder, 'file');
  if (!existsSync(`${file}.lock`)) return;
  try {
    lockFile(file).close();
  } catch (error) {
    if (!sqliteCodeOf(error).startsWith('SQLITE_BUSY')) throw error;
    throw new LedgerError(
      'locked',
      `another process writes ${target}: wait for it, or choose another name`,
      error,
    );
  }
  rmSync(folder, { recursive: true, force: true });
}
