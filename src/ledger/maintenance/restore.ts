import { accessSync, constants, existsSync, linkSync, realpathSync, renameSync, rmSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { RECORD_MISSING_EVENTS } from '../events/missing-events.ts';
import { checkLedger } from '../file/check.ts';
import { guarded, LedgerError, toLedgerError } from '../file/errors.ts';
import { copyToPrivateFile, isSqliteFile, syncWithFolder } from '../file/files.ts';
import { isDawatchDatabase } from '../file/migrations.ts';
import { createFolder, lockFile, realPath } from '../file/open.ts';
import { refuseLinkedSideFiles } from '../file/permissions.ts';
import { openStaging, type Staging } from '../file/staging.ts';

/** More events than there can have been since the backup. */
const SKIPPED_EVENTS = 1_000_000;

export type RestoreStep = 'copying' | 'checking' | 'replacing';

export type RestoredLedger = {
  bytes: number;
  submissions: number;
  /** Where the ledger that was replaced is now; null: there was none. */
  replacedFile: string | null;
};

/**
 * Puts a backup in the place of the ledger, which is kept beside it. The backup is copied and checked before anything is
 * replaced; whoever ends this at any moment has either the one ledger or the other. Throws LedgerError: a server has the
 * ledger, or the backup can't be used.
 */
export function restoreLedger(options: {
  file: string;
  backup: string;
  now: number;
  onStep?: (step: RestoreStep) => void;
}): RestoredLedger {
  const { file, backup, now, onStep } = options;
  const path = guarded(file, () => realPath(file));
  refuseLinkedSideFiles(path);
  refuseUnusable(backup, path);
  guarded(file, () => createFolder(path));
  const lock = guarded(file, () => lockFile(path));
  let staging: Staging | undefined;
  try {
    onStep?.('copying');
    staging = guarded(file, () => openStaging(path));
    const copy = staging.file;
    guarded(file, () => copyToPrivateFile(backup, copy));
    onStep?.('checking');
    const checked = checkLedger(copy, backup);
    const replaced = guarded(file, () => closeReplaced(path, { file, now }));
    guarded(file, () => prepare(copy, { newestEvent: replaced.newestEvent, now }));
    onStep?.('replacing');
    return { ...checked, replacedFile: guarded(file, () => replace(path, copy, now)) };
  } finally {
    staging?.close();
    lock.close();
  }
}

function refuseUnusable(backup: string, path: string): void {
  if (!statSync(backup, { throwIfNoEntry: false })?.isFile())
    throw new LedgerError('read_only', `there is no file ${backup}`);
  try {
    accessSync(backup, constants.R_OK);
  } catch (error) {
    throw new LedgerError('read_only', `${backup} can't be read: check that this user may`, error);
  }
  if (realpathSync(backup) === path) throw new LedgerError('read_only', `${backup} is the ledger itself`);
  if ((statSync(`${backup}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0)
    throw new LedgerError(
      'read_only',
      `beside ${backup} is a ${backup}-wal: it is no backup, but a ledger that is in use or was not closed. ` +
        `DAWATCH_DATABASE=${backup} dawatch backup <file> makes a backup of it`,
    );
}

/**
 * Brings everything of the old ledger into its one file, if it can be read at all. A damaged one is kept as it is; how far it
 * counted nobody knows then, but not beyond the milliseconds since 1970.
 */
function closeReplaced(path: string, { file, now }: { file: string; now: number }): { newestEvent: number } {
  const unreadable = { newestEvent: now };
  if (!existsSync(path)) return unreadable;
  // SQLite would delete the log of a file that it can't read, and nobody knows what can still be made of the two.
  if (!isSqliteFile(path)) return unreadable;
  let db: Database.Database | undefined;
  try {
    db = new Database(path, { timeout: 0 });
    if (!isDawatchDatabase(db))
      throw new LedgerError('foreign', `${file} is a database of another program; it was left as it is`);
    const [checkpoint] = db.pragma('wal_checkpoint(TRUNCATE)') as { busy: number }[];
    if (checkpoint?.busy)
      throw new LedgerError(
        'locked',
        `${file} is being read, by a backup, an export or another program: end that first`,
      );
    return { newestEvent: Number(db.prepare(NEWEST_EVENT).pluck().get() ?? 0) };
  } catch (error) {
    const known = toLedgerError(file, error);
    if (known instanceof LedgerError && known.problem === 'corrupt') return unreadable;
    throw known;
  } finally {
    db?.close();
  }
}

const NEWEST_EVENT = "SELECT seq FROM sqlite_sequence WHERE name = 'outbox'";

/**
 * What others know of the ledger that is replaced must not deceive them: no number of an event is given twice, whoever resumes
 * hears that events may be missing, and the budget counts what was asked until now.
 */
function prepare(copy: string, { newestEvent, now }: { newestEvent: number; now: number }): void {
  const db = new Database(copy);
  try {
    db.transaction(() => {
      const own = Number(db.prepare(NEWEST_EVENT).pluck().get() ?? 0);
      const newest = Math.max(newestEvent, own + SKIPPED_EVENTS);
      db.prepare("DELETE FROM sqlite_sequence WHERE name = 'outbox'").run();
      db.prepare("INSERT INTO sqlite_sequence (name, seq) VALUES ('outbox', ?)").run(newest);
      db.prepare(RECORD_MISSING_EVENTS).run({ through: newest });
      db.prepare('UPDATE upstreams SET asked_until = ? WHERE asked_until IS NOT NULL').run(now);
    })();
  } finally {
    db.close();
  }
  syncWithFolder(copy);
}

/** The old file has both names until the new one takes its place, so that there is a ledger at every moment. */
function replace(path: string, copy: string, now: number): string | null {
  const kept = existsSync(path) ? `${path}.replaced-${new Date(now).toISOString().replaceAll(/[-:]/g, '')}` : null;
  if (kept !== null) {
    keep(path, kept);
    // Only of a ledger that could not be read: otherwise it is empty by now.
    if (existsSync(`${path}-wal`)) keep(`${path}-wal`, `${kept}-wal`);
  }
  // A log of the old file would be taken for one of the new.
  for (const suffix of ['-wal', '-shm']) rmSync(`${path}${suffix}`, { force: true });
  renameSync(copy, path);
  syncWithFolder(path);
  return kept;
}

function keep(path: string, kept: string): void {
  try {
    linkSync(path, kept);
  } catch {
    // Not every file system has links.
    copyToPrivateFile(path, kept);
  }
}
