import { existsSync, rmSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { guarded, LedgerError } from './errors.ts';
import { createPrivateFile, INSTALLATION } from './files.ts';
import type { LedgerDatabase } from './ledger-database.ts';
import { realPath } from './open.ts';
import { needsRecovery, recoverLedger } from './recovery.ts';
import { continueCopy } from './restore.ts';
import { lockLedger } from './staging.ts';

/**
 * `generation` grows when another installation continues a copy. `installation`: the id in the lock
 * file, which no replica contains. `since`: epoch milliseconds.
 */
export type Primary = { generation: number; installation: string; since: number };

const READ = `
  SELECT value ->> 'generation' AS generation, value ->> 'installation' AS installation, value ->> 'since' AS since
  FROM meta WHERE key = 'primary'`;
const WRITE = `
  INSERT INTO meta (key, value) VALUES ('primary', json_object('generation', ?, 'installation', ?, 'since', ?))
  ON CONFLICT DO UPDATE SET value = excluded.value`;

/**
 * Makes this installation the primary of an open ledger, and publishes that in the file
 * `….primary`, which is replicated beside the ledger. `isCopy`: another installation was the
 * primary, so this ledger was restored from its replica or backup. It may have sent events and
 * polls since: their numbers are skipped, and the request budget counts polls until now.
 */
export function claimPrimary(
  database: LedgerDatabase,
  { installation, now }: { installation: string; now: number },
): Primary & { isCopy: boolean } {
  const file = `${guarded(database.file, () => realPath(database.file))}.primary`;
  const stored = database.row<Primary>(READ);
  const published = publishedIn(file);
  const isCopy = stored !== undefined && stored.installation !== installation;
  const next = stored === undefined ? 1 : stored.generation + (isCopy ? 1 : 0);
  // A restored backup of this installation may be of an earlier generation than its claim.
  const generation =
    published?.installation === installation ? Math.max(next, published.generation) : next;
  const isUnchanged = !isCopy && generation === stored?.generation;
  const primary = isUnchanged ? stored : { generation, installation, since: now };
  if (!isUnchanged)
    database.transaction(() => {
      database.run(WRITE, generation, installation, now);
      if (isCopy) continueCopy(database.connection, { now });
    });
  if (published?.installation !== installation || published.generation !== generation)
    guarded(file, () => publish(file, primary));
  return { ...primary, isCopy };
}

/** Removes a damaged file: the ledger has its content, so that it is written again. */
function publishedIn(file: string): Primary | undefined {
  try {
    return guarded(file, () => primaryIn(file));
  } catch (error) {
    if (!(error instanceof LedgerError) || error.problem !== 'corrupt') throw error;
    for (const suffix of ['', '-wal', '-shm', '-journal'])
      rmSync(`${file}${suffix}`, { force: true });
    return undefined;
  }
}

function publish(file: string, { generation, installation, since }: Primary): void {
  createPrivateFile(file);
  const db = new Database(file);
  try {
    db.pragma('journal_mode = WAL');
    db.exec('CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)');
    db.prepare(WRITE).run(generation, installation, since);
  } finally {
    db.close();
  }
}

/**
 * Whether a ledger may be served. `primary`: the server that continues the replica; undefined if
 * there is no replica yet. not_restored: there is a replica, but no ledger, so that a server would
 * begin with an empty one.
 */
export type PrimaryCheck =
  | { kind: 'allowed'; primary: Primary | undefined }
  | { kind: 'superseded' | 'not_restored'; primary: Primary };

/**
 * Compares a ledger with its replica. `copy` is the file `….primary` as restored from the replica;
 * a missing one means that there is no replica yet. Throws LedgerError if a file cannot be read, or
 * a server has the ledger.
 */
export function checkPrimary(file: string, copy: string): PrimaryCheck {
  const path = guarded(file, () => realPath(file));
  const lock = lockLedger(path, file);
  try {
    // Litestream starts after this check, and the server could not replace the ledger beside it.
    if (needsRecovery(path)) guarded(file, () => recoverLedger(path, file));
    const primary = guarded(copy, () => primaryIn(copy));
    const local = guarded(file, () => primaryIn(path));
    if (!primary) return { kind: 'allowed', primary };
    if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0)
      return { kind: 'not_restored', primary };
    // A ledger that was never served here is a restored copy, which this server will continue.
    if (local === undefined || local.installation !== lock.prepare(INSTALLATION).pluck().get())
      return { kind: 'allowed', primary };
    const isSuperseded =
      primary.installation !== local.installation && primary.generation >= local.generation;
    return { kind: isSuperseded ? 'superseded' : 'allowed', primary };
  } finally {
    lock.close();
  }
}

/** Returns undefined for a missing file, an unfinished one, and one of an earlier version. */
function primaryIn(file: string): Primary | undefined {
  if (!existsSync(file)) return undefined;
  // A read-only connection cannot roll back the journal of a killed process. A complete ledger has
  // a log instead.
  const db = new Database(file, { readonly: !existsSync(`${file}-journal`), fileMustExist: true });
  try {
    const isEmpty =
      db.prepare("SELECT count(*) FROM sqlite_schema WHERE name = 'meta'").pluck().get() === 0;
    return isEmpty ? undefined : (db.prepare(READ).get() as Primary | undefined);
  } finally {
    db.close();
  }
}
