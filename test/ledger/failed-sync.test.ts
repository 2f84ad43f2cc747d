import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, it, vi } from 'vitest';
import { LedgerDatabase } from '../../src/ledger/ledger-database.ts';
import { integrityOf, openLedger, rawConnection } from '../support/ledger/ledger-file.ts';
import { tempFolder } from '../support/temp-folder.ts';

const PAGE_BYTES = 4_096;

/** A connection whose syncs fail from now on. `failures`: those that must end the process. */
function openFailing(failing: 'transaction' | 'prepare' | 'pragma') {
  const file = join(tempFolder(), 'dawatch.db');
  openLedger({ file }).close();
  const db = rawConnection(file);
  const failures: unknown[] = [];
  const fail = () => {
    throw new Database.SqliteError('disk I/O error', 'SQLITE_IOERR_FSYNC');
  };
  if (failing === 'transaction')
    Object.assign(db, { transaction: () => Object.assign(fail, { immediate: fail }) });
  const database = new LedgerDatabase(db, file, (error) => failures.push(error));
  if (failing === 'prepare') Object.assign(db, { prepare: () => ({ run: fail }) });
  if (failing === 'pragma') Object.assign(db, { pragma: vi.fn(fail) });
  return { file, database, failures };
}

const large = 'x'.repeat(1_200 * PAGE_BYTES);
const keepLarge = (database: LedgerDatabase) =>
  database.run`INSERT OR REPLACE INTO meta (key, value) VALUES ('large', ${large})`;

it.each([
  ['a transaction', 'transaction', (database: LedgerDatabase) => database.transaction(() => 1)],
  ['a statement', 'prepare', (database: LedgerDatabase) => database.run('DELETE FROM meta')],
] as const)('a failed sync in the commit of %s ends the process', (_, failing, work) => {
  const { file, database, failures } = openFailing(failing);
  expect(() => work(database)).toThrow('the disk failed');
  expect(failures).toEqual([expect.objectContaining({ problem: 'io' })]);
  expect(existsSync(`${file}.sync-failed`)).toBe(true);
});

it('a failed sync in a checkpoint ends the process; the commit before it is on the disk', () => {
  const { file, database, failures } = openFailing('pragma');
  keepLarge(database);
  expect(failures).toEqual([expect.objectContaining({ problem: 'io' })]);
  expect(existsSync(`${file}.sync-failed`)).toBe(true);
  expect(database.value`SELECT length(value) FROM meta WHERE key = 'large'`).toBe(large.length);
});

it('a long log is copied to the ledger by the commit, and begun again', () => {
  const { database, file } = openLedger();
  for (let turn = 0; turn < 5; turn++) keepLarge(database);
  expect(statSync(file).size).toBeGreaterThan(1_200 * PAGE_BYTES);
  expect(statSync(`${file}-wal`).size).toBeLessThan(3 * large.length);
  expect(integrityOf(file)).toBe('ok');
});
