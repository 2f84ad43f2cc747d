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
import Database from 'better-sqlite3';
import { guarded, LedgerError, sqliteCodeOf } from './errors.ts';
import { lockFile, syncWithFolder } from './files.ts';
import { assertLedger } from './schema.ts';

/**
 * Returns its size. Throws LedgerError if damaged, not a ledger, or too new. `name`: for errors.
 */
export function verifyLedger(file: string, name: string): { bytes: number; submissions: number } {
  return guarded(name, () => {
    const db = new Database(file, { fileMustExist: true });
    try {
      assertLedger(db, name);
      assertUndamaged(db, name);
      const pragma = (name: string) => Number(db.pragma(name, { simple: true }));
      const submissions = Number(db.prepare('SELECT count(*) FROM submissions').pluck().get());
      return { bytes: pragma('page_count') * pragma('page_size'), submissions };
    } finally {
      db.close();
    }
  });
}

/** Reads all of an open file. Throws LedgerError, with the file called `name`, if it is damaged. */
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

/** SQLite does not verify constraints of a connection that only reads. */
const JSON_COLUMNS = [
  ['submissions', 'submission_id', 'metadata'],
  ['history', 'seq', 'response'],
  ['history', 'seq', 'changes'],
  ['outbox', 'id', 'detail'],
  ['webhooks', 'webhook_id', 'types'],
  ['webhooks', 'webhook_id', 'metadata'],
] as const;

/** Blocks, perhaps for minutes. Throws LedgerError if damaged or unreadable. */
export function assertIntact(file: string): void {
  guarded(file, () => {
    const db = new Database(file, { readonly: true, fileMustExist: true });
    try {
      assertUndamaged(db, file);
      for (const [table, key, column] of JSON_COLUMNS) {
        const row = db
          .prepare(`SELECT ${key} FROM ${table} WHERE json_valid(${column}) = 0 LIMIT 1`)
          .pluck()
          .get();
        if (row !== undefined)
          throw new LedgerError(
            'corrupt',
            `${file} is damaged (the ${column} of ${row} in ${table} is not JSON)`,
          );
      }
    } finally {
      db.close();
    }
  });
}

const NO_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'];

export type Staging = ReturnType<typeof openStaging>;

/**
 * Beside `target`, for this user only, so that no other can redirect writes by a link. Removes what
 * a killed process left. Throws LedgerError `locked` while another writes the same target.
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
    close(): void {
      lock.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Writes both to the disk. Throws LedgerError if `target` exists. */
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
