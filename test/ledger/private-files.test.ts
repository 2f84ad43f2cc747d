import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../../src/ledger/open.ts';
import { backupLedger, restoreLedger } from '../../src/ledger/restore.ts';
import { openLedger, rawConnection, trackRequests } from '../support/ledger/ledger-file.ts';
import { startChild } from '../support/processes/child-process.ts';
import { tempFolder } from '../support/temp-folder.ts';

const modeOf = (path: string) => statSync(path).mode & 0o777;

function closedLedger(count = 1): string {
  const ledger = openLedger();
  ledger.track(trackRequests(count), 0);
  ledger.close();
  return ledger.file;
}

it.each(['', '-wal', '-journal', '.lock', '.lock-journal', '.primary'])(
  'nothing is written through a symbolic link at dawatch.db%s',
  (suffix) => {
    const target = join(tempFolder(), 'target');
    const backup = closedLedger();
    const file = suffix === '' ? join(tempFolder(), 'dawatch.db') : closedLedger();
    rmSync(`${file}${suffix}`, { force: true });
    symlinkSync(target, `${file}${suffix}`);
    expect(() => openDatabase({ file, now: 0 })).toThrow('is a symbolic link');
    expect(() => restoreLedger({ file, backup, now: 0 })).toThrow('is a symbolic link');
    expect(existsSync(target)).toBe(false);
  },
);

it('nothing is written through a link at the path of a backup, not even a later one', async () => {
  const file = closedLedger();
  const target = join(tempFolder(), 'copy.db');
  const linked = join(tempFolder(), 'target');
  const plant = () => {
    if (readdirSync(dirname(target)).every((name) => name !== 'copy.db'))
      symlinkSync(linked, target);
  };
  await expect(backupLedger(file, target, { onStep: plant })).rejects.toThrow('already exists');
  await expect(backupLedger(file, target)).rejects.toThrow('already exists');
  expect(existsSync(linked)).toBe(false);
  expect(readdirSync(dirname(target))).toEqual(['copy.db']);
});

it('every created file is for its owner only, also with the umask 0', async () => {
  const before = process.umask(0);
  onTestFinished(() => void process.umask(before));
  const folder = tempFolder();
  const file = join(folder, 'made', 'here', 'dawatch.db');
  const ledger = openLedger({ file });
  ledger.track(trackRequests(2_000), 0);
  for (const path of [dirname(file), dirname(dirname(file))]) expect(modeOf(path)).toBe(0o700);
  for (const suffix of ['', '-wal', '-shm', '.lock'])
    expect(modeOf(`${file}${suffix}`), suffix).toBe(0o600);
  const backup = join(folder, 'copy.db');
  const during = new Set<number>();
  await backupLedger(file, backup, {
    onStep() {
      const isPartial = (name: string) => name.startsWith('copy.db.partial-');
      for (const name of readdirSync(folder).filter(isPartial))
        during.add(modeOf(join(folder, name)));
    },
  });
  expect([...during]).toEqual([0o700]);
  ledger.close();
  const { replacedFile } = restoreLedger({ file, backup, now: 0 });
  for (const path of [backup, file, String(replacedFile)]) expect(modeOf(path), path).toBe(0o600);
});

it('a start removes the permissions of other users, but not those of a file that is not a ledger', () => {
  const file = closedLedger();
  chmodSync(file, 0o664);
  chmodSync(`${file}.lock`, 0o644);
  openLedger({ file });
  expect([modeOf(file), modeOf(`${file}.lock`)]).toEqual([0o600, 0o600]);
  const foreign = join(tempFolder(), 'theirs.db');
  const db = rawConnection(foreign);
  db.exec('CREATE TABLE theirs (a)');
  db.close();
  chmodSync(foreign, 0o644);
  expect(() => openDatabase({ file: foreign, now: 0 })).toThrow();
  expect(modeOf(foreign)).toBe(0o644);
});

it('a killed backup leaves a private folder, which the next backup to the same file removes', async () => {
  const file = closedLedger(5_000);
  const folder = tempFolder();
  const target = join(folder, 'copy.db');
  const child = startChild(new URL('./backup-child.ts', import.meta.url), [file, target, 'stop']);
  expect(await child.message()).toEqual({ half: true });
  expect(readdirSync(folder)).toEqual([expect.stringMatching(/^copy\.db\.partial-.{6}$/)]);
  await expect(backupLedger(file, target)).rejects.toThrow('another process writes');
  await child.kill();
  expect(existsSync(target)).toBe(false);
  await backupLedger(file, join(folder, 'other.db'));
  expect(readdirSync(folder), 'only the same file is its business').toHaveLength(2);
  await backupLedger(file, target);
  expect(readdirSync(folder).sort()).toEqual(['copy.db', 'other.db']);
});

it.runIf(process.geteuid?.() === 0)(
  'a backup neither opens nor removes what another user created beside it',
  async () => {
    const file = closedLedger();
    const target = join(tempFolder(), 'copy.db');
    const planted = `${target}.partial-abcdef`;
    mkdirSync(planted);
    writeFileSync(join(planted, 'file.lock'), 'not a lock');
    chownSync(planted, 65_534, 65_534);
    await backupLedger(file, target);
    expect(readdirSync(dirname(target)).sort()).toEqual(['copy.db', 'copy.db.partial-abcdef']);
  },
);
