import type Database from 'better-sqlite3';
import { LedgerError } from './errors.ts';
import { SCHEMA_1 } from './schema-1.ts';

/**
 * Oldest first. Each runs once, in its own transaction; `user_version` counts those that ran. A
 * released one never changes.
 */
export const MIGRATIONS: readonly string[] = [SCHEMA_1];

/** "dawa" in ASCII: marks a SQLite file as a ledger. */
export const APPLICATION_ID = 0x64617761;

/** Returns whether any version of dawatch created the file. */
export function isDawatchDatabase(db: Database.Database): boolean {
  return Number(db.pragma('application_id', { simple: true })) === APPLICATION_ID;
}

/**
 * Throws LedgerError for a database of another program or of a newer dawatch. An empty database
 * passes.
 */
export function assertOwnSchema(db: Database.Database, file: string): void {
  const version = versionOf(db);
  const tables = Number(db.prepare('SELECT count(*) FROM sqlite_schema').pluck().get());
  if (!isDawatchDatabase(db) && (tables > 0 || version !== 0))
    throw new LedgerError(
      'foreign',
      `${file} is a database of another program; it was left unchanged`,
    );
  if (version > MIGRATIONS.length)
    throw new LedgerError(
      'foreign',
      `${file} was written by a newer dawatch (schema ${version}, this version supports ${MIGRATIONS.length}): upgrade dawatch`,
    );
}

/** Throws LedgerError unless the file is a ledger of this or an older dawatch. */
export function assertLedger(db: Database.Database, file: string): void {
  assertOwnSchema(db, file);
  if (!isDawatchDatabase(db))
    throw new LedgerError('foreign', `${file} is empty: it is not a ledger`);
}

/** Returns the schema version of the file and the one that this program needs. */
export function schemaOf(db: Database.Database): { found: number; needed: number } {
  return { found: versionOf(db), needed: MIGRATIONS.length };
}

/**
 * Runs the migrations that the file lacks, each in its own transaction, so that a start that is
 * killed is continued by the next one. A new ledger gets its schema in one transaction: each waits
 * for the disk, which took a tenth of a start (row start).
 */
export function migrate(db: Database.Database): void {
  const run = db.transaction((from: number, to: number) => {
    for (const sql of MIGRATIONS.slice(from, to)) db.exec(sql);
    db.pragma(`application_id = ${APPLICATION_ID}`);
    db.pragma(`user_version = ${to}`);
  });
  const version = versionOf(db);
  if (version === 0) run.immediate(0, MIGRATIONS.length);
  else for (let from = version; from < MIGRATIONS.length; from += 1) run.immediate(from, from + 1);
}

function versionOf(db: Database.Database): number {
  return Number(db.pragma('user_version', { simple: true }));
}
