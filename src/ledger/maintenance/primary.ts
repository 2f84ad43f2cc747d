import { existsSync } from 'node:fs';
import Database from 'better-sqlite3';
import { guarded } from '../file/errors.ts';
import type { LedgerDatabase } from '../file/ledger-database.ts';
import { installationOf, realPath } from '../file/open.ts';
import { createPrivateFile } from '../file/permissions.ts';
import { continueCopy } from './restore.ts';

/**
 * The server that continues a ledger. `generation` grows whenever another installation continues a copy of the ledger.
 * `installation` is the id in the lock file beside the ledger, which no replica contains. `since` is in epoch milliseconds.
 */
export type Primary = { generation: number; installation: string; since: number };

const READ = `
  SELECT value ->> 'generation' AS generation, value ->> 'installation' AS installation, value ->> 'since' AS since
  FROM meta WHERE key = 'primary'`;
const WRITE = `
  INSERT INTO meta (key, value) VALUES ('primary', json_object('generation', ?, 'installation', ?, 'since', ?))
  ON CONFLICT DO UPDATE SET value = excluded.value`;

/**
 * Makes this installation the primary of an open ledger, and publishes that in the file `….primary`, which is replicated beside
 * the ledger. `isCopy`: another installation was the primary, so this ledger was restored from its replica or backup. What that
 * one did since is unknown: its event numbers are skipped, and its polls count in the request budget until now.
 */
export function claimPrimary(
  database: LedgerDatabase,
  { installation, now }: { installation: string; now: number },
): Primary & { isCopy: boolean } {
  const known = database.row<Primary>(READ);
  const isCopy = known !== undefined && known.installation !== installation;
  const primary = known && !isCopy ? known : { generation: (known?.generation ?? 0) + 1, installation, since: now };
  if (primary !== known)
    database.transaction(() => {
      database.run(WRITE, primary.generation, installation, now);
      if (isCopy) continueCopy(database.connection, { now });
    });
  guarded(database.file, () => publish(`${realPath(database.file)}.primary`, primary));
  return { ...primary, isCopy };
}

/** Writes the file unless it is up to date. */
function publish(file: string, { generation, installation, since }: Primary): void {
  createPrivateFile(file);
  const db = new Database(file);
  try {
    db.pragma('journal_mode = WAL');
    db.exec('CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)');
    const known = db.prepare(READ).get() as Primary | undefined;
    if (known?.generation === generation && known.installation === installation) return;
    db.prepare(WRITE).run(generation, installation, since);
  } finally {
    db.close();
  }
}

/** Whether a ledger may be served. `primary`: the server that continues the replica; undefined if there is no replica yet. */
export type PrimaryCheck = { kind: 'allowed'; primary: Primary | undefined } | { kind: 'superseded'; primary: Primary };

/**
 * Compares a ledger with its replica. `copy` is the file `….primary` as restored from the replica; a missing one means that there
 * is no replica yet. Throws LedgerError if a file cannot be read, or a server has the ledger.
 */
export function checkPrimary(file: string, copy: string): PrimaryCheck {
  const path = guarded(file, () => realPath(file));
  const primary = guarded(copy, () => primaryIn(copy));
  const own = guarded(file, () => primaryIn(path));
  // A ledger that was never served here is a restored copy, which this installation will continue.
  const isServedHere = own !== undefined && guarded(file, () => installationOf(path)) === own.installation;
  if (!primary || !isServedHere) return { kind: 'allowed', primary };
  const isContinued = primary.generation > own.generation;
  const isContested = primary.generation === own.generation && primary.installation !== own.installation;
  return { kind: isContinued || isContested ? 'superseded' : 'allowed', primary };
}

function primaryIn(file: string): Primary | undefined {
  if (!existsSync(file)) return undefined;
  const db = new Database(file, { readonly: true, fileMustExist: true });
  try {
    return db.prepare(READ).get() as Primary | undefined;
  } finally {
    db.close();
  }
}
