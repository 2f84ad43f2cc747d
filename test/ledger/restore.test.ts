import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { LedgerError } from '../../src/ledger/errors.ts';
import { backupLedger, restoreLedger } from '../../src/ledger/restore.ts';
import { context, observation } from '../support/ledger/domain.ts';
import {
  integrityOf,
  openLedger,
  rawConnection,
  trackRequest,
  trackRequests,
} from '../support/ledger/ledger-file.ts';
import { startChild } from '../support/processes/child-process.ts';
import { seeded } from '../support/seed.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

const RESTORE = new URL('./restore-child.ts', import.meta.url);
const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);
const KEPT = 'dawatch.db.replaced-20260102T030405.000Z';

/**
 * Creates a backup with the submissions `old…`, and the closed ledger that continued with `new…`.
 */
async function openWorld({ events = 3 } = {}) {
  const first = openLedger();
  first.track(trackRequests(5, 'old'), 0);
  const backup = join(tempFolder(), 'backup.db');
  await backupLedger(first.file, backup);
  for (let index = 0; index < events; index++)
    first.record([observation('finalized', index, `old${index}`)], context());
  first.track([trackRequest('new0')], 0);
  first.close();
  return { file: first.file, backup };
}

function refusal(file: string, backup: string): LedgerError {
  const before = existsSync(file) ? readFileSync(file) : undefined;
  const folder = existsSync(dirname(file)) ? readdirSync(dirname(file)) : [];
  try {
    restoreLedger({ file, backup, now: NOW });
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error;
    if (before) expect(readFileSync(file).equals(before), 'the ledger was changed').toBe(true);
    const added = readdirSync(dirname(file)).filter((name) => !folder.includes(name));
    expect(added.filter((name) => !name.endsWith('.lock'))).toEqual([]);
    return error;
  }
  throw new Error('it was restored');
}

describe('a restored backup', () => {
  it('replaces the ledger, which is kept beside it unchanged', async () => {
    const { file, backup } = await openWorld();
    const restored = restoreLedger({ file, backup, now: NOW });
    const kept = join(dirname(file), KEPT);
    expect(restored).toEqual({ replacedFile: kept, bytes: statSync(file).size, submissions: 5 });
    expect(readdirSync(dirname(file)).toSorted()).toEqual(['dawatch.db', 'dawatch.db.lock', KEPT]);
    for (const name of [file, kept]) expect(statSync(name).mode & 0o777).toBe(0o600);
    const ledger = openLedger({ file });
    expect(ledger.submissions.get('new0')).toBeUndefined();
    expect(ledger.submissions.get('old1')).toMatchObject({ status: 'tracking' });
    expect(integrityOf(file)).toBe('ok');
    const before = openLedger({ file: kept });
    expect([
      before.submissions.get('new0')?.status,
      before.submissions.get('old1')?.status,
    ]).toEqual(['tracking', 'finalized']);
    expect(existsSync(backup)).toBe(true);
  });

  it('can be restored without an existing ledger, and over an empty file', async () => {
    const { backup } = await openWorld();
    const empty = join(tempFolder(), 'dawatch.db');
    writeFileSync(empty, '');
    expect(restoreLedger({ file: empty, backup, now: NOW }).submissions).toBe(5);
    const file = join(tempFolder(), 'new', 'dawatch.db');
    expect(restoreLedger({ file, backup, now: NOW }).replacedFile).toBeNull();
    expect(openLedger({ file }).submissions.get('old4')).toBeDefined();
  });

  it('replaces the ledger of a killed server, whose log is kept, too', async () => {
    const { file, backup } = await openWorld();
    const crashed = join(tempFolder(), 'dawatch.db');
    const writing = openLedger({ file });
    writing.track([trackRequest('late')], 0);
    for (const suffix of ['', '-wal']) copyFileSync(`${file}${suffix}`, `${crashed}${suffix}`);
    const { replacedFile } = restoreLedger({ file: crashed, backup, now: NOW });
    expect(openLedger({ file: crashed }).submissions.get('old0')?.status).toBe('tracking');
    expect(openLedger({ file: String(replacedFile) }).submissions.get('late')).toBeDefined();
  });

  it.each(['', '-wal'])(
    'also takes the place of one that is damaged beyond reading, kept with its log%s',
    async (suffix) => {
      const { backup } = await openWorld();
      const file = join(tempFolder(), 'dawatch.db');
      writeFileSync(file, 'garbage '.repeat(1_000));
      if (suffix) writeFileSync(`${file}${suffix}`, 'log '.repeat(1_000));
      const { replacedFile } = restoreLedger({ file, backup, now: NOW });
      expect(readFileSync(String(replacedFile), 'utf8')).toContain('garbage');
      if (suffix) expect(readFileSync(`${replacedFile}${suffix}`, 'utf8')).toContain('log');
      expect(openLedger({ file }).search.list({ limit: 10 }).submissions).toHaveLength(5);
    },
  );

  it('numbers its events after those of the replaced ledger, and reports missing events', async () => {
    const { file, backup } = await openWorld();
    restoreLedger({ file, backup, now: NOW });
    const ledger = openLedger({ file });
    expect(ledger.events.newestSeq()).toBe(1_000_000);
    expect(ledger.events.missingThrough()).toBe(1_000_000);
    ledger.record([observation('finalized', 9, 'old0')], context());
    expect(ledger.events.after(3, 10).map(({ seq }) => seq)).toEqual([1_000_001]);
    ledger.close();
    const again = restoreLedger({ file, backup, now: NOW + 1 });
    expect(again.replacedFile).not.toBeNull();
    expect(openLedger({ file }).events.newestSeq()).toBe(1_000_001);
  });

  it('counts for the request budget as polling until now', async () => {
    const { file, backup } = await openWorld();
    const db = rawConnection(backup);
    db.exec("UPDATE upstreams SET polling_until = 7 WHERE name = 'default'");
    db.close();
    restoreLedger({ file, backup, now: NOW });
    expect(openLedger({ file }).upstream('default').pollingUntil).toBe(NOW);
  });
});

describe('a restore changes nothing', () => {
  it.each<[string, (backup: string) => void, string, RegExp]>([
    [
      'no database',
      (backup) => writeFileSync(backup, 'garbage '.repeat(1_000)),
      'corrupt',
      /backup\.db is damaged or not a SQLite/,
    ],
    [
      'half of a backup',
      (backup) => writeFileSync(backup, readFileSync(backup).subarray(0, 20_000)),
      'corrupt',
      /damaged/,
    ],
    [
      'a backup of a newer dawatch',
      (backup) => alter(backup, 'PRAGMA user_version = 99'),
      'foreign',
      /newer dawatch.*upgrade/,
    ],
    [
      'rows that refer to missing rows',
      (backup) => alter(backup, 'PRAGMA foreign_keys = OFF; DELETE FROM submissions'),
      'corrupt',
      /refer to missing rows/,
    ],
    [
      'a ledger in use',
      (backup) => writeFileSync(`${backup}-wal`, 'x'),
      'read_only',
      /dawatch backup/,
    ],
  ])('from %s', async (_name, spoil, problem, message) => {
    const { file, backup } = await openWorld();
    spoil(backup);
    const error = refusal(file, backup);
    expect(error.problem).toBe(problem);
    expect(error.message).toMatch(message);
  });

  it('from a missing or unreadable file, a folder, or the ledger itself', async () => {
    const { file } = await openWorld();
    const loop = join(tempFolder(), 'loop.db');
    symlinkSync(loop, loop);
    expect(refusal(file, loop).message).toMatch(/loop.db cannot be read/);
    expect(refusal(file, join(tempFolder(), 'nowhere.db')).message).toMatch(/there is no file/);
    expect(refusal(file, tempFolder()).message).toMatch(/there is no file/);
    expect(refusal(file, file).message).toMatch(/the ledger itself/);
  });

  it('while a server or a reader uses the ledger', async () => {
    const { file, backup } = await openWorld();
    const server = openLedger({ file });
    expect(refusal(file, backup)).toMatchObject({
      problem: 'locked',
      message: expect.stringMatching(/stop it first/),
    });
    server.track([trackRequest('late')], 0);
    server.close();
    const reader = rawConnection(file);
    reader.exec('BEGIN; SELECT count(*) FROM submissions');
    const writer = rawConnection(file);
    writer.exec("UPDATE meta SET value = '1' WHERE key = 'written_at'");
    writer.close();
    expect(refusal(file, backup).message).toMatch(/is being read/);
    reader.exec('COMMIT');
    expect(restoreLedger({ file, backup, now: NOW }).replacedFile).not.toBeNull();
  });
});

function alter(file: string, sql: string): void {
  const db = rawConnection(file);
  db.exec(sql);
  db.close();
}

it('kill -9 at random moments leaves either ledger complete, and the next restore works', async () => {
  const { between } = seeded('restore');
  const { file, backup } = await openWorld();
  const other = openLedger();
  other.track(trackRequests(500, 'other'), 0);
  const second = join(tempFolder(), 'second.db');
  await backupLedger(other.file, second);
  for (let round = 0; round < 5; round++) {
    const child = startChild(RESTORE, [file, backup, second]);
    await child.message();
    const backups = between(1, 8);
    await until(() => child.messages.length >= backups);
    await child.kill();
    expect(existsSync(file)).toBe(true);
    openLedger({ file }).close();
    // A page of a list ends early while its rows are read from a slow disk.
    const db = rawConnection(file);
    const submissions = db.prepare('SELECT count(*) FROM submissions').pluck().get();
    db.close();
    expect([5, 6, 500]).toContain(submissions);
    expect(integrityOf(file)).toBe('ok');
  }
  restoreLedger({ file, backup, now: NOW });
  expect(readdirSync(dirname(file)).filter((name) => name.includes('restoring'))).toEqual([]);
});
