import { existsSync, lstatSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { guarded, isLocked, LedgerError, sqliteCodeOf } from './errors.ts';
import {
  closeUnchanged,
  createFolder,
  lockFile,
  refuseUnusableFiles,
  syncWithFolder,
} from './files.ts';
import { assertLedger } from './schema.ts';

/**
 * Reads all of an open file. Throws LedgerError, with the file called `name`, if it is damaged.
 * SQLite verifies constraints only for a connection that can write.
 */
export function assertUndamaged(db: Database.Database, name: string): void {
  const verdict = db.pragma('integrity_check(1)', { simple: true });
  if (verdict !== 'ok') throw new LedgerError('corrupt', `${name} is damaged (${verdict})`);
  const dangling = db.pragma('foreign_key_check') as unknown[];
  if (dangling.length > 0)
    throw new LedgerError(
      'corrupt',
      `${name} is damaged (${dangling.length} rows refer to missing rows)`,
    );
}

/** Also the line breaks that are ignored when a response is read. */
const VALUE = 'trim(d.value, char(9, 10, 13, 32))';

/** A hash of an upstream's response, or of a caller, that is not hexadecimal. */
const MALFORMED_HASH = `
  SELECT 'the ' || d.key || ' of the history entry ' || h.seq FROM history h, json_each(h.response, '$.data') d
  WHERE d.key IN ('block_hash', 'tx_hash', 'data_hash') AND d.type = 'text'
    AND iif(${VALUE} LIKE '0x%', substr(${VALUE}, 3), ${VALUE}) GLOB '*[^0-9A-Fa-f]*'
  UNION ALL
  SELECT 'the data_hash of ' || submission_id FROM submissions WHERE substr(data_hash, 3) GLOB '*[^0-9a-f]*'
  LIMIT 1`;

/**
 * Returns its size, and leaves the file as it is. Throws LedgerError if damaged, not a ledger, or
 * too new. Blocks, perhaps for minutes. `name`: for errors.
 */
export function verifyLedger(file: string, name: string): { bytes: number; submissions: number } {
  return guarded(name, () => {
    const db = new Database(file, { fileMustExist: true });
    try {
      assertLedger(db, name);
      assertUndamaged(db, name);
      const hash = db.prepare(MALFORMED_HASH).pluck().get();
      if (hash !== undefined)
        throw new LedgerError('corrupt', `${name} is damaged (${hash} is not hexadecimal)`);
      const pragma = (name: string) => Number(db.pragma(name, { simple: true }));
      const submissions = Number(db.prepare('SELECT count(*) FROM submissions').pluck().get());
      return { bytes: pragma('page_count') * pragma('page_size'), submissions };
    } finally {
      closeUnchanged(db);
    }
  });
}

/** Creates the folder. Throws LedgerError if another process has the lock, or its file is gone. */
export function lockLedger(path: string, file: string): Database.Database {
  try {
    return guarded(file, () => {
      createFolder(path);
      refuseUnusableFiles(path);
      if (existsSync(`${path}.lock`) || !existsSync(`${path}.primary`)) return lockFile(path);
      const message = `${path}.lock was removed, and a server may still use ${file}: stop that server, then confirm it with \`rm ${path}.primary\``;
      throw new LedgerError('read_only', message);
    });
  } catch (error) {
    if (!isLocked(error)) throw error;
    guarded(file, () => openStaging(path).close());
    const message = `${file} is in use by another dawatch: only one server can use a ledger; stop it first`;
    throw new LedgerError('locked', message, error);
  }
}

export type Staging = ReturnType<typeof openStaging>;

/**
 * Opens a folder beside `target` for this user only, so that no other can redirect writes by a
 * link. Removes what a killed process left. Throws LedgerError while another process writes the
 * same target, and on a file system without locks.
 */
export function openStaging(target: string) {
  const prefix = `${target}.partial-`;
  for (const name of readdirSync(dirname(target))) {
    const path = join(dirname(target), name);
    if (name.startsWith(basename(prefix)) && isOwn(path)) removeLeftover(path, target);
  }
  const folder = mkdtempSync(prefix);
  const file = join(folder, 'file');
  const remove = () => rmSync(folder, { recursive: true, force: true });
  try {
    const lock = lockFile(file);
    return {
      file,
      close(): void {
        lock.close();
        remove();
      },
    };
  } catch (error) {
    remove();
    if (!sqliteCodeOf(error).startsWith('SQLITE_BUSY')) throw error;
    const message = `the file system of ${target} has no locks, such as some NFS: keep the ledger on a local disk`;
    throw new LedgerError('read_only', message, error);
  }
}

/** Writes both to the disk. Throws LedgerError if `target` exists. */
export function publish(file: string, target: string): void {
  syncWithFolder(file);
  refuseTaken(target);
  renameSync(file, target);
  syncWithFolder(target);
}

/** Throws LedgerError if `target` exists, even as a broken link. */
export function refuseTaken(target: string): void {
  if (!lstatSync(target, { throwIfNoEntry: false })) return;
  throw new LedgerError('read_only', `${target} already exists and was left unchanged`);
}

/** Whether this user has created it: the folder of a backup may be open to others. */
function isOwn(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.uid === process.geteuid?.();
}

/** Keeps a folder whose lock a process holds. Without a lock file it is new or empty. */
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
