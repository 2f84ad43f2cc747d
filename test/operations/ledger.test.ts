import {
  chmodSync,
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import {
  checkDisk,
  checkLedger,
  checkLedgerIntegrity,
  inspectLedger,
} from '../../src/operations/doctor/ledger.ts';
import { openLedger, rawConnection, trackRequests } from '../support/ledger/ledger-file.ts';
import { tempFolder } from '../support/temp-folder.ts';

const PAGE_BYTES = 4_096;

function named(file: string, name: string) {
  return checkLedger(file, file, inspectLedger(file, 0)).filter((finding) => finding.name === name);
}

async function integrity(file: string, full = false) {
  const [finding] = await checkLedgerIntegrity(file, {
    full,
    signal: new AbortController().signal,
  });
  return finding;
}

function closedLedger(count = 10): string {
  const ledger = openLedger();
  ledger.track(trackRequests(count), 0);
  ledger.close();
  return ledger.file;
}

describe('the ledger', () => {
  it('in a folder where everyone may create files gets a warning', () => {
    const file = closedLedger();
    chmodSync(dirname(file), 0o1777);
    expect(named(file, 'ledger.rights')).toMatchObject([
      { status: 'ok' },
      { status: 'warning', message: expect.stringContaining(dirname(file)) },
    ]);
  });

  it('passes beside its server, and is not modified', async () => {
    const ledger = openLedger();
    ledger.track(trackRequests(10), 0);
    expect(
      checkLedger(ledger.file, ledger.file, inspectLedger(ledger.file, 0)).map(
        ({ status }) => status,
      ),
    ).toEqual(['ok', 'ok', 'ok']);
    expect(await integrity(ledger.file)).toMatchObject({
      status: 'ok',
      message: expect.stringContaining('--full'),
    });
    ledger.track(trackRequests(10, 'more'), 0);
  });

  it('that is closed is not changed by a byte', async () => {
    const file = closedLedger();
    const before = readFileSync(file);
    expect(named(file, 'ledger')).toMatchObject([{ status: 'ok' }]);
    expect(await integrity(file, true)).toMatchObject({
      status: 'ok',
      message: 'intact, including indexes',
    });
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  it('that does not exist yet is created only by the first start', () => {
    const folder = tempFolder();
    const file = join(folder, 'data', 'dawatch.db');
    expect(named(file, 'ledger')).toMatchObject([
      { status: 'ok', message: expect.stringMatching(/first start creates it/) },
    ]);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('of a newer dawatch or another program gets no advice to restore over it or to change its permissions', () => {
    for (const pragma of ['user_version = 999', 'application_id = 7']) {
      const file = closedLedger();
      const db = rawConnection(file);
      db.pragma(pragma);
      db.close();
      chmodSync(file, 0o644);
      const findings = checkLedger(file, file, inspectLedger(file, 0));
      expect(findings).toMatchObject([{ name: 'ledger', status: 'problem' }]);
      expect(findings[0]?.action).not.toMatch(/restore|chmod/);
    }
  });

  it('that cannot be created because a file is in its way is a problem', () => {
    const file = join(tempFolder(), 'file');
    writeFileSync(file, '');
    expect(named(join(file, 'dawatch.db'), 'ledger')).toMatchObject([{ status: 'problem' }]);
  });

  it.each<[string, (db: Database.Database) => void, string, RegExp]>([
    ['of a newer dawatch', (db) => db.pragma('user_version = 999'), 'problem', /newer dawatch/],
    [
      'that lacks a table',
      (db) => db.exec('DROP TABLE alerts; DROP TABLE attempts; DROP TABLE deliveries'),
      'problem',
      /no such table/,
    ],
  ])('%s', (_what, alter, status, message) => {
    const file = closedLedger();
    const db = rawConnection(file);
    const version = () => db.pragma('user_version', { simple: true });
    alter(db);
    const before = version();
    expect(named(file, 'ledger')).toMatchObject([
      { status, message: expect.stringMatching(message), action: expect.stringMatching(/./) },
    ]);
    expect(version()).toBe(before);
  });

  it('that is empty, a foreign database or no database is a problem', () => {
    const file = join(tempFolder(), 'dawatch.db');
    writeFileSync(file, '');
    expect(named(file, 'ledger')).toMatchObject([
      { status: 'ok', message: expect.stringMatching(/empty/) },
    ]);
    rawConnection(file).exec('CREATE TABLE theirs (a)');
    expect(named(file, 'ledger')).toMatchObject([
      { status: 'problem', message: expect.stringMatching(/another program/) },
    ]);
    const text = join(tempFolder(), 'dawatch.db');
    writeFileSync(text, 'no database '.repeat(1_000));
    expect(named(text, 'ledger')).toMatchObject([
      { status: 'problem', message: expect.stringMatching(/damaged/) },
    ]);
  });

  it('that others may read is a problem', () => {
    const file = closedLedger();
    chmodSync(file, 0o644);
    expect(named(file, 'ledger.rights')).toMatchObject([
      { status: 'warning', action: `chmod 600 ${file}` },
    ]);
  });

  it('with a write-ahead log that only grows gets a warning', () => {
    const file = closedLedger();
    writeFileSync(`${file}-wal`, '');
    truncateSync(`${file}-wal`, 300 * 1024 * 1024);
    expect(named(file, 'ledger.wal')).toMatchObject([
      { status: 'warning', message: expect.stringMatching(/315 MB/) },
    ]);
  });
});

describe('the integrity check', () => {
  it('finds an overwritten page', async () => {
    const file = closedLedger(2_000);
    const descriptor = openSync(file, 'r+');
    const offset = Math.floor(statSync(file).size / PAGE_BYTES / 2) * PAGE_BYTES;
    writeSync(descriptor, Buffer.alloc(PAGE_BYTES, 0xa5), 0, PAGE_BYTES, offset);
    closeSync(descriptor);
    expect(await integrity(file)).toMatchObject({
      status: 'problem',
      message: expect.stringMatching(/is damaged/),
      action: expect.stringMatching(/backup/),
    });
  });

  it('finds an index with another row only with --full', async () => {
    const file = closedLedger();
    const db = new Database(file);
    db.unsafeMode();
    db.pragma('writable_schema = ON');
    db.exec(
      'CREATE TABLE odd (a, b); INSERT INTO odd VALUES (1, 2); CREATE INDEX odd_a ON odd (a)',
    );
    db.exec("UPDATE sqlite_schema SET sql = 'CREATE INDEX odd_a ON odd (b)' WHERE name = 'odd_a'");
    db.close();
    expect(await integrity(file)).toMatchObject({ status: 'ok' });
    expect(await integrity(file, true)).toMatchObject({ status: 'problem' });
  });

  it('reports a file that is no database', async () => {
    expect(await integrity(tempFolder())).toMatchObject({
      status: 'problem',
      message: expect.stringMatching(/cannot be read/),
    });
  });

  it('stops when its signal aborts', async () => {
    const signal = AbortSignal.abort();
    await expect(checkLedgerIntegrity(closedLedger(), { full: true, signal })).rejects.toThrow(
      /abort/,
    );
  });
});

describe('the disk', () => {
  const of =
    (freeBytes: number, type = 0xef53) =>
    () => ({ bavail: freeBytes / 1_000, bsize: 1_000, type });

  it.each([
    [50e6, 'problem'],
    [500e6, 'warning'],
    [5e9, 'ok'],
  ])('with %i bytes left: %s', (freeBytes, status) => {
    const [space, ...more] = checkDisk(
      join(tempFolder(), 'not', 'there', 'dawatch.db'),
      of(freeBytes),
    );
    expect([space?.status, more]).toEqual([status, []]);
  });

  it('of this machine is measured', () => {
    expect(checkDisk(join(tempFolder(), 'dawatch.db'))[0]?.message).toMatch(/^\d+\.\d GB free in /);
  });

  it.runIf(process.platform === 'linux')('on a network file system gets a warning', () => {
    // A signed number is accepted, too.
    for (const type of [0x6969, 0xff534d42, 0xff534d42 | 0])
      expect(checkDisk('/tmp/dawatch.db', of(5e9, type))[1]).toMatchObject({ status: 'warning' });
  });
});
