import { chownSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { lockFile } from '../../src/ledger/files.ts';
import { openBeside } from '../../src/ledger/open.ts';
import { backupLedger, restoreLedger } from '../../src/ledger/restore.ts';
import { auditLedger } from '../support/ledger/audit.ts';
import { integrityOf, Ledger, openLedger, trackRequests } from '../support/ledger/ledger-file.ts';
import { startChild } from '../support/processes/child-process.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { COUNT, IDS, leaveFailed, MARKER } from './failed-sync.ts';

const READER = new URL('./reader-child.ts', import.meta.url);
const contentOf = (file: string) => ['', '-wal'].map((suffix) => readFileSync(file + suffix));

function expectUnchanged(file: string, content: readonly Buffer[]): void {
  expect(contentOf(file).map((part, index) => part.equals(content[index] as Buffer))).toEqual([
    true,
    true,
  ]);
  expect(existsSync(file + MARKER)).toBe(true);
}

describe('a start after a failed sync', () => {
  it('replaces the ledger by a copy with everything that was in its log', () => {
    const folder = tempFolder();
    const file = leaveFailed(folder);
    let recoveries = 0;
    const ledger = new Ledger({ file, now: 0, onRecovery: () => (recoveries += 1) });
    expect(ledger.submissions.lookup(IDS).notFound).toEqual([]);
    ledger.track(trackRequests(1, 'later-'), 2);
    ledger.close();
    expect(recoveries).toBe(1);
    expect(readdirSync(folder).sort()).toEqual(['dawatch.db', 'dawatch.db.lock']);
    auditLedger(file, [...IDS, 'later-0']);
  });

  it('ignores the end of a log whose beginning was never written', () => {
    const file = leaveFailed(tempFolder());
    const log = readFileSync(`${file}-wal`);
    log.fill(0, log.length - 8_192, log.length - 4_096);
    writeFileSync(`${file}-wal`, log);
    openLedger({ file }).close();
    expect(integrityOf(file)).toBe('ok');
    expect(existsSync(file + MARKER)).toBe(false);
  });

  it('is refused while another program has the ledger open, and leaves it unchanged', async () => {
    const file = leaveFailed(tempFolder());
    const reader = startChild(READER, [file]);
    expect(await reader.message()).toBe(COUNT);
    reader.process.send('end');
    expect(await reader.message()).toBe('ended');
    const content = contentOf(file);
    expect(() => openLedger({ file })).toThrow(/another program has it open, such as Litestream/);
    expectUnchanged(file, content);
    await reader.kill();
    openLedger({ file }).close();
    auditLedger(file, IDS);
  });

  it('is refused if the ledger is damaged, leaves it unchanged, and a backup can be restored', () => {
    const file = leaveFailed(tempFolder());
    const backup = join(tempFolder(), 'backup.db');
    const source = openLedger({ file: backup });
    source.track(trackRequests(COUNT), 1);
    source.close();
    // The newest frame of each page would hide the damage, so it is in the log.
    const log = readFileSync(`${file}-wal`);
    damageFrames(log);
    writeFileSync(`${file}-wal`, log);
    const damagedFile = readFileSync(file);
    damagedFile.fill(0xff, 4_096);
    writeFileSync(file, damagedFile);
    const content = contentOf(file);
    expect(() => openLedger({ file })).toThrow(/is damaged/);
    expectUnchanged(file, content);
    restoreLedger({ file, backup, now: 0 });
    expect(existsSync(file + MARKER)).toBe(false);
    auditLedger(file, IDS);
  });

  it('is refused while the disk has no space for a copy, and the next one tries again', () => {
    const file = leaveFailed(tempFolder());
    const content = contentOf(file);
    const { prepare } = Database.prototype;
    const restore = () => Object.assign(Database.prototype, { prepare });
    onTestFinished(() => void restore());
    Database.prototype.prepare = function (this: Database.Database, sql: string) {
      if (sql.startsWith('VACUUM'))
        throw new Database.SqliteError('database or disk is full', 'SQLITE_FULL');
      return prepare.call(this, sql);
    } as typeof prepare;
    expect(() => openLedger({ file })).toThrow(/no space left/);
    expectUnchanged(file, content);
    restore();
    openLedger({ file }).close();
    auditLedger(file, IDS);
  });
});

it('a command that writes recovers a ledger without a server, too', () => {
  const file = leaveFailed(tempFolder());
  const { database, close } = openBeside({ file, now: 0 });
  expect(database.value('SELECT count(*) FROM submissions')).toBe(COUNT);
  close();
  expect(existsSync(file + MARKER)).toBe(false);
});

it('a command is refused, and changes nothing, while a server recovers the ledger', () => {
  const file = leaveFailed(tempFolder());
  const content = contentOf(file);
  const lock = lockFile(file);
  onTestFinished(() => void lock.close());
  expect(() => openBeside({ file, now: 0 })).toThrow(/in use by another dawatch/);
  expectUnchanged(file, content);
});

it('a command that copies or checks the ledger is refused while it is being replaced', async () => {
  const file = leaveFailed(tempFolder());
  writeFileSync(`${file}.replacement`, '');
  const target = join(tempFolder(), 'backup.db');
  await expect(backupLedger(file, target)).rejects.toThrow(/is being replaced: start the server/);
  expect(existsSync(target)).toBe(false);
});

it.runIf(process.geteuid?.() === 0)('a recovery by root leaves the ledger to its owner', () => {
  const file = leaveFailed(tempFolder());
  for (const suffix of ['', '-wal']) chownSync(file + suffix, 65_534, 65_534);
  openBeside({ file, now: 0 }).close();
  const { uid, gid, mode } = statSync(file);
  expect([uid, gid, mode & 0o777]).toEqual([65_534, 65_534, 0o600]);
});

/** Makes all frames of a log but the first unusable. */
function damageFrames(log: Buffer): void {
  log.fill(0, 32 + 24 + 4_096);
}
