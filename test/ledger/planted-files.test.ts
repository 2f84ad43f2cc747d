import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { backupLedger } from '../../src/ledger/backup.ts';
import { openDatabase } from '../../src/ledger/open.ts';
import { restoreLedger } from '../../src/ledger/restore.ts';
import { openLedger, rawConnection, trackRequests } from '../support/ledger/ledger-file.ts';
import { startChild } from '../support/processes/child-process.ts';
import { tempFolder } from '../support/temp-folder.ts';

const BACKUP = new URL('./backup-child.ts', import.meta.url);
const OPEN = new URL('./open-child.ts', import.meta.url);
const isRoot = process.geteuid?.() === 0;
const UNPRIVILEGED = { uid: 65_534, gid: 65_534 };
const modeOf = (path: string) => statSync(path).mode & 0o777;

/**
 * Creates a closed ledger with some submissions, and two targets for links: an existing file and a
 * missing one.
 */
function openWorld() {
  const ledger = openLedger();
  ledger.track(trackRequests(5_000), 0);
  ledger.close();
  const folder = tempFolder();
  const target = join(tempFolder(), 'target');
  writeFileSync(target, 'precious');
  const absent = join(dirname(target), 'absent');
  const isUntouched = () => readFileSync(target, 'utf8') === 'precious' && !existsSync(absent);
  return { file: ledger.file, folder, target, absent, isUntouched };
}

describe('nothing is written through a symbolic link', () => {
  it.each(['-wal', '-shm', '-journal', '.lock', '.lock-journal', '.primary', '.primary-wal'])(
    'at %s beside the ledger',
    (suffix) => {
      for (const to of ['target', 'absent'] as const) {
        const { file, isUntouched, ...paths } = openWorld();
        rmSync(`${file}${suffix}`, { force: true });
        symlinkSync(paths[to], `${file}${suffix}`);
        expect(() => openDatabase({ file, now: 0 })).toThrow(`${file}${suffix} is a symbolic link`);
        expect(() => restoreLedger({ file, backup: file, now: 0 })).toThrow(
          `${file}${suffix} is a symbolic link`,
        );
        expect(isUntouched()).toBe(true);
      }
    },
  );

  it('at the ledger itself, to a file that does not exist', () => {
    const { folder, absent, isUntouched } = openWorld();
    const file = join(folder, 'dawatch.db');
    symlinkSync(absent, file);
    expect(() => openDatabase({ file, now: 0 })).toThrow(`${file} is a symbolic link`);
    expect(isUntouched()).toBe(true);
  });

  it.each(['target', 'absent'] as const)('at the path of a backup (%s)', async (to) => {
    const { file, folder, isUntouched, ...paths } = openWorld();
    const target = join(folder, 'copy.db');
    symlinkSync(paths[to], target);
    await expect(backupLedger(file, target)).rejects.toThrow('already exists');
    expect(isUntouched()).toBe(true);
    expect(readdirSync(folder)).toEqual(['copy.db']);
  });

  it('at the path of a backup that is created during the copy', async () => {
    const { file, folder, absent, isUntouched } = openWorld();
    const target = join(folder, 'copy.db');
    const plant = () =>
      existsSync(target) ||
      lstatSync(target, { throwIfNoEntry: false }) ||
      symlinkSync(absent, target);
    await expect(backupLedger(file, target, plant)).rejects.toThrow('already exists');
    expect(isUntouched()).toBe(true);
    expect(readdirSync(folder)).toEqual(['copy.db']);
  });

  it('at any predictable path while a file is incomplete', async () => {
    const { file, folder, absent, isUntouched } = openWorld();
    const names = ['', '.lock', '-wal', '-shm', '-journal'];
    const guesses = (target: string, middle: string) =>
      names.map((suffix) => `${target}${middle}${suffix}`);
    const backup = join(folder, 'copy.db');
    const planted = [
      ...guesses(backup, '.partial'),
      ...guesses(file, '.restoring'),
      `${backup}.partial-`,
      `${file}.partial-`,
    ];
    for (const path of planted) symlinkSync(absent, path);
    await backupLedger(file, backup);
    restoreLedger({ file, backup, now: 0 });
    expect(isUntouched()).toBe(true);
    for (const path of planted) expect(lstatSync(path).isSymbolicLink(), path).toBe(true);
    for (const path of [backup, file]) expect(lstatSync(path)).toMatchObject({ nlink: 1 });
  });
});

describe.each([0o000, 0o022, 0o077])('with the umask %o', (umask) => {
  it('every created file is for its owner only', async () => {
    const before = process.umask(umask);
    onTestFinished(() => void process.umask(before));
    const folder = tempFolder();
    const file = join(folder, 'made', 'here', 'dawatch.db');
    const ledger = openLedger({ file });
    ledger.track(trackRequests(2_000), 0);
    for (const path of [dirname(file), dirname(dirname(file))]) expect(modeOf(path)).toBe(0o700);
    for (const suffix of ['', '-wal', '-shm', '.lock'])
      expect(modeOf(`${file}${suffix}`), suffix).toBe(0o600);
    const during = new Set<string>();
    const describe = (target: string) => {
      for (const name of readdirSync(folder).filter((other) => other.startsWith(target)))
        during.add(`${name.replace(/-.*/, '')} ${modeOf(join(folder, name)).toString(8)}`);
    };
    await backupLedger(file, join(folder, 'copy.db'), () => describe('copy.db'));
    expect([...during]).toEqual(['copy.db.partial 700']);
    ledger.close();
    const { replacedFile } = restoreLedger({ file, backup: join(folder, 'copy.db'), now: 0 });
    for (const path of [join(folder, 'copy.db'), file, String(replacedFile)])
      expect(modeOf(path), path).toBe(0o600);
  });
});

describe('permissions of other users', () => {
  it('are removed when the ledger is opened, and none is added', () => {
    const { file } = openWorld();
    chmodSync(file, 0o664);
    chmodSync(`${file}.lock`, 0o644);
    const ledger = openLedger({ file });
    expect(ledger.tightened).toEqual([file, `${file}.lock`]);
    expect([modeOf(file), modeOf(`${file}.lock`)]).toEqual([0o600, 0o600]);
    ledger.close();
    expect(openLedger({ file }).tightened).toEqual([]);
  });

  it('are removed for the folder, too, if it holds nothing else', () => {
    for (const [beside, mode] of [
      [[], 0o700],
      [['notes.txt'], 0o755],
    ] as const) {
      const folder = tempFolder();
      const file = join(folder, 'dawatch.db');
      openLedger({ file }).close();
      for (const name of beside) writeFileSync(join(folder, name), '');
      chmodSync(folder, 0o755);
      expect(openLedger({ file }).tightened).toEqual(mode === 0o700 ? [folder] : []);
      expect(modeOf(folder)).toBe(mode);
    }
  });

  it('stay if the file is not a ledger', () => {
    const folder = tempFolder();
    const foreignFile = join(folder, 'theirs.db');
    const db = rawConnection(foreignFile);
    db.exec('CREATE TABLE theirs (a)');
    db.close();
    const text = join(folder, 'hosts');
    writeFileSync(text, '127.0.0.1 localhost');
    for (const file of [foreignFile, text]) {
      chmodSync(file, 0o644);
      expect(() => openDatabase({ file, now: 0 })).toThrow();
      expect(modeOf(file)).toBe(0o644);
    }
  });

  it('stay for a shared folder, which may hold files of others', () => {
    const folder = tempFolder();
    chmodSync(folder, 0o755);
    openLedger({ file: join(folder, 'dawatch.db') });
    expect(modeOf(folder)).toBe(0o755);
  });
});

describe.skipIf(!isRoot)(
  'in a folder where everyone may make files, as a user without privileges',
  () => {
    function sharedFolder(): string {
      const folder = tempFolder();
      chmodSync(folder, 0o1777);
      return folder;
    }

    it('do not affect a backup, which is created beside planted files', async () => {
      const folder = sharedFolder();
      const file = join(folder, 'dawatch.db');
      const opened = startChild(OPEN, [file], UNPRIVILEGED);
      expect(await opened.message()).toEqual({ opened: true });
      const target = join(folder, 'copy.db');
      const linkTarget = join(tempFolder(), 'target');
      for (const suffix of ['.partial', '.partial.lock', '.partial-wal'])
        symlinkSync(linkTarget, `${target}${suffix}`);
      mkdirSync(`${target}.partial-abcdef`);
      writeFileSync(`${target}.partial-abcdef/file.lock`, '');
      const child = startChild(BACKUP, [file, target], UNPRIVILEGED);
      expect(await child.message()).toEqual({ done: true });
      expect(statSync(target)).toMatchObject({ uid: UNPRIVILEGED.uid, nlink: 1 });
      expect(modeOf(target)).toBe(0o600);
      expect(existsSync(linkTarget)).toBe(false);
    });

    it('lead to the refusal of a planted ledger, because its owner could read it', async () => {
      const file = join(sharedFolder(), 'dawatch.db');
      openLedger({ file }).close();
      chmodSync(file, 0o666);
      chmodSync(`${file}.lock`, 0o666);
      const child = startChild(OPEN, [file], UNPRIVILEGED);
      expect(await child.message()).toMatchObject({
        opened: false,
        problem: 'read_only',
        message: expect.stringContaining('belongs to another user'),
      });
    });
  },
);

it('a killed backup leaves a private folder, which the next backup to the same file removes', async () => {
  const { file, folder } = openWorld();
  const target = join(folder, 'copy.db');
  const child = startChild(BACKUP, [file, target, 'stop']);
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
