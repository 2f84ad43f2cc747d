import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fdatasyncSync,
  openSync,
  realpathSync,
  statSync,
} from 'node:fs';
import Database from 'better-sqlite3';
import { guarded, LedgerError, toLedgerError } from './errors.ts';
import {
  closeUnchanged,
  copyToPrivateFile,
  createFolder,
  createPrivateFile,
  linkOrCopy,
  replacedName,
  syncWithFolder,
} from './files.ts';
import { openSnapshot, RECORD_MISSING_EVENTS, realPath } from './open.ts';
import {
  completeReplacement,
  markingFailedSync,
  needsRecovery,
  publishReplacement,
  REPLACEMENT,
} from './recovery.ts';
import { isDawatchDatabase, migrate } from './schema.ts';
import {
  lockLedger,
  openStaging,
  publish,
  refuseTaken,
  type Staging,
  verifyLedger,
} from './staging.ts';

/** More pages at once would delay a server on the same disk. */
const PAGES_AT_ONCE = 256;

/** `done` and `total`: pages. */
type BackupStep = { kind: 'copying'; done: number; total: number } | { kind: 'checking' };

type BackupOptions = {
  /** Rehearses the restore: migrates the copy, which must have the rows of the ledger. */
  verify?: boolean;
  onStep?: (step: BackupStep) => void;
};

/**
 * Copies a ledger in use, checks the copy and moves it: `target` is never incomplete. Throws
 * LedgerError if there is no ledger, `target` exists, or another backup writes it.
 */
export async function backupLedger(
  file: string,
  target: string,
  { verify = false, onStep = () => undefined }: BackupOptions = {},
): Promise<{ bytes: number; submissions: number }> {
  if (target === '') throw new LedgerError('read_only', 'the path of the backup is empty');
  // A read transaction: without it, every write of the server would restart the copy.
  const source = openSnapshot(file);
  try {
    const rows = verify ? countRows(source) : [];
    return await copyLedger(target, source, {
      onStep,
      check(copy) {
        // The check takes longer than the copy, and a server cannot shorten its log while the
        // snapshot is open.
        source.close();
        onStep({ kind: 'checking' });
        const checked = verifyLedger(copy, 'the copy');
        if (verify) rehearseRestore(copy, rows);
        return checked;
      },
    });
  } finally {
    source.close();
  }
}

type RowCount = { table: string; rows: number };

function countRows(db: Database.Database): RowCount[] {
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all();
  return (tables as string[]).map((table) => {
    return { table, rows: Number(db.prepare(`SELECT count(*) FROM "${table}"`).pluck().get()) };
  });
}

/** Migrates as the next start does, compares the rows, and rolls back. Throws LedgerError. */
function rehearseRestore(file: string, expected: readonly RowCount[]): void {
  const db = new Database(file);
  try {
    db.exec('BEGIN');
    migrate(db);
    const found = new Map(countRows(db).map(({ table, rows }) => [table, rows]));
    const other = expected.find(({ table, rows }) => (found.get(table) ?? rows) !== rows);
    if (other) throw new Error(`its table ${other.table} does not have ${other.rows} rows`);
  } catch (error) {
    const known = toLedgerError(file, error);
    const message = `the copy cannot be restored: ${error instanceof Error ? error.message : error}`;
    throw known instanceof LedgerError ? known : new LedgerError('corrupt', message, error);
  } finally {
    db.close();
  }
}

/**
 * Copies an open ledger whose file was removed or replaced, and returns where, beside that file. A
 * restore checks the copy. Throws LedgerError.
 */
export async function saveDetached(ledger: Database.Database, now: number): Promise<string> {
  const target = replacedName(ledger.name, now);
  guarded(target, () => createFolder(target));
  await copyLedger(target, ledger, { onStep: () => undefined, check: () => undefined });
  return target;
}

/** Returns the result of `check`, which gets the path of the copy before it is `target`. */
async function copyLedger<T>(
  target: string,
  source: Database.Database,
  { onStep, check }: { onStep: (step: BackupStep) => void; check: (copy: string) => T },
): Promise<T> {
  let staging: Staging | undefined;
  try {
    refuseTaken(target);
    staging = openStaging(target);
    createPrivateFile(staging.file);
    const descriptor = openSync(staging.file, 'r');
    const copying = source.backup(staging.file, {
      progress({ totalPages, remainingPages }) {
        const done = totalPages - remainingPages;
        onStep({ kind: 'copying', done, total: totalPages });
        fdatasyncSync(descriptor);
        return PAGES_AT_ONCE;
      },
    });
    await copying.finally(() => closeSync(descriptor));
    const checked = check(staging.file);
    publish(staging.file, target);
    return checked;
  } catch (error) {
    throw toLedgerError(target, error);
  } finally {
    staging?.close();
  }
}

/** Exceeds the number of events that can have been added since the backup. */
const SKIPPED_EVENTS = 1_000_000;

/**
 * Replaces the ledger by a backup and keeps the replaced file beside it. The backup is copied and
 * checked first, and the replacement is atomic: a process that is killed leaves either ledger.
 * Throws LedgerError if the ledger is in use or the backup cannot be used.
 */
export function restoreLedger(options: { file: string; backup: string; now: number }) {
  const { file, backup, now } = options;
  return guarded(file, () => {
    const path = realPath(file);
    refuseUnusable(backup, path);
    const lock = lockLedger(path, file);
    let staging: Staging | undefined;
    try {
      if (existsSync(`${path}${REPLACEMENT}`)) completeReplacement(path);
      staging = openStaging(path);
      const copy = staging.file;
      copyToPrivateFile(backup, copy);
      const checked = verifyLedger(copy, backup);
      prepare(copy, { newestEvent: closeReplaced(path, { file, now }), now });
      return { ...checked, replacedFile: replace(path, copy, now) };
    } finally {
      staging?.close();
      lock.close();
    }
  });
}

function refuseUnusable(backup: string, path: string): void {
  let isFile: boolean | undefined;
  try {
    isFile = statSync(backup, { throwIfNoEntry: false })?.isFile();
    if (isFile) accessSync(backup, constants.R_OK);
  } catch (error) {
    const message = `${backup} cannot be read: check its permissions and those of its folders`;
    throw new LedgerError('read_only', message, error);
  }
  if (!isFile) throw new LedgerError('read_only', `there is no file ${backup}`);
  if (realpathSync(backup) === path)
    throw new LedgerError('read_only', `${backup} is the ledger itself`);
  if ((statSync(`${backup}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0)
    throw new LedgerError(
      'read_only',
      `${backup} has a log, ${backup}-wal: it is not a backup, but a ledger that is in use or was not closed. ` +
        `DAWATCH_DATABASE=${backup} dawatch backup <file> creates a backup of it`,
    );
}

/**
 * Moves the log into the file; a damaged one stays. Returns its newest event, or an upper bound.
 */
function closeReplaced(path: string, { file, now }: { file: string; now: number }): number {
  // SQLite would delete the log of an empty file, and copy one whose sync failed.
  if (!statSync(path, { throwIfNoEntry: false })?.size || needsRecovery(path)) return now;
  const db = new Database(path, { timeout: 0 });
  try {
    if (!isDawatchDatabase(db))
      throw new LedgerError(
        'foreign',
        `${file} is a database of another program; it was left unchanged`,
      );
    const [checkpoint] = markingFailedSync(
      path,
      () => db.pragma('wal_checkpoint(TRUNCATE)') as { busy: number }[],
    );
    if (checkpoint?.busy)
      throw new LedgerError(
        'locked',
        `${file} is being read by a backup, an export or another program: end that first`,
      );
    const newestEvent = Number(db.prepare(NEWEST_EVENT).pluck().get() ?? 0);
    db.close();
    return newestEvent;
  } catch (error) {
    closeUnchanged(db);
    const failure = toLedgerError(file, error);
    if (failure instanceof LedgerError && failure.problem === 'corrupt') return now;
    throw failure;
  }
}

const NEWEST_EVENT = "SELECT seq FROM sqlite_sequence WHERE name = 'outbox'";

function prepare(copy: string, options: { newestEvent: number; now: number }): void {
  const db = new Database(copy);
  try {
    db.transaction(() => continueCopy(db, options))();
  } finally {
    db.close();
  }
  syncWithFolder(copy);
}

/**
 * Prepares a copy for clients of the original: event numbers are not assigned twice, clients that
 * resume the feed learn that events may be missing, and the request budget counts the polls sent
 * until now. `newestEvent`: the newest event of the original, if it is known.
 */
export function continueCopy(
  db: Database.Database,
  { newestEvent = 0, now }: { newestEvent?: number; now: number },
) {
  const last = Number(db.prepare(NEWEST_EVENT).pluck().get() ?? 0);
  const newest = Math.max(newestEvent, last + SKIPPED_EVENTS);
  db.prepare("DELETE FROM sqlite_sequence WHERE name = 'outbox'").run();
  db.prepare("INSERT INTO sqlite_sequence (name, seq) VALUES ('outbox', ?)").run(newest);
  db.prepare(RECORD_MISSING_EVENTS).run({ through: newest });
  db.prepare('UPDATE upstreams SET polling_until = ?').run(now);
}

/** Keeps a second name of the old file, so that a ledger always exists. null: there was none. */
function replace(path: string, copy: string, now: number): string | null {
  const kept = existsSync(path) ? replacedName(path, now) : null;
  if (kept !== null) {
    linkOrCopy(path, kept);
    // Only a ledger that SQLite did not close still has a log with content.
    if (existsSync(`${path}-wal`)) linkOrCopy(`${path}-wal`, `${kept}-wal`);
  }
  publishReplacement(copy, path);
  completeReplacement(path);
  return kept;
}
