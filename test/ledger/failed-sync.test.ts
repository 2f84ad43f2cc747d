import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { LedgerDatabase } from '../../src/ledger/ledger-database.ts';
import { LogSync } from '../../src/ledger/log-sync.ts';
import { Ledger } from '../../src/wiring/ledger-stores.ts';
import { isCompilerMissing, openTestDisk } from '../faults/disk/test-disk.ts';
import { openLedger, rawConnection } from '../support/ledger/ledger-file.ts';
import { startChild } from '../support/processes/child-process.ts';
import { tempFolder } from '../support/temp-folder.ts';

const CLOSING = new URL('./closing-child.ts', import.meta.url);

it.skipIf(isCompilerMissing())(
  'a failed sync at the close acknowledges no commit, although the running sync succeeds',
  async () => {
    const disk = openTestDisk(tempFolder(), { records: false });
    const child = startChild(CLOSING, [join(disk.root, 'dawatch.db')], { env: disk.env });
    expect(await child.message()).toBe('opened');
    disk.set({ syncDelayMs: 1_000 });
    child.process.send('commit');
    expect(await child.message()).toBe('syncing');
    disk.set({ logSyncFailures: 1 });
    child.process.send('close');
    expect(await child.message()).toEqual(['failed', 'io', 'rejected']);
    expect(disk.failedSyncs()).toBe(1);
  },
);

it.each([
  // SQLite syncs the header of a log that begins again.
  [
    'in the commit of a transaction',
    (database: LedgerDatabase) => database.transaction(() => undefined),
  ],
  ['in the commit of a statement', (database: LedgerDatabase) => database.run('DELETE FROM meta')],
])('a failed sync %s ends the process, as any other', (_, work) => {
  const file = join(tempFolder(), 'dawatch.db');
  openLedger({ file }).close();
  const db = rawConnection(file);
  const failures: unknown[] = [];
  const sync = new LogSync(db, { onFailed: (error) => failures.push(error) });
  const fail = () => {
    throw new Database.SqliteError('disk I/O error', 'SQLITE_IOERR_FSYNC');
  };
  Object.assign(db, {
    pragma: fail,
    prepare: () => ({ run: fail }),
    transaction: () => ({ immediate: fail }),
  });
  const database = new LedgerDatabase(db, file, sync);
  expect(() => work(database)).toThrow('the disk failed');
  expect(failures).toEqual([expect.objectContaining({ problem: 'io' })]);
  sync.close();
});

it('a ledger whose log cannot be opened for syncs is closed, and can be opened again', () => {
  const file = join(tempFolder(), 'dawatch.db');
  const open = () => new Ledger({ file, now: 0, deferredSync: { onFailed: () => undefined } });
  refuseToOpen(`${file}-wal`, 'EMFILE');
  expect(open).toThrow('EMFILE');
  fs.openSync = realOpen;
  syncBuiltinESMExports();
  expect(openLedger({ file }).submissions.get('a')).toBeUndefined();
});

const realOpen = fs.openSync;

/** Simulates a process without free file descriptors, for one file. */
function refuseToOpen(refused: string, code: string): void {
  fs.openSync = (path, ...rest) => {
    if (path === refused && rest[0] === 'r')
      throw Object.assign(new Error(`${code}: open`), { code });
    return realOpen(path, ...rest);
  };
  syncBuiltinESMExports();
  onTestFinished(() => {
    fs.openSync = realOpen;
    syncBuiltinESMExports();
  });
}
