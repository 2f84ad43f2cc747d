import { execSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { LedgerError } from '../../src/ledger/errors.ts';
import { openBeside, openDatabase } from '../../src/ledger/open.ts';
import { backupLedger } from '../../src/ledger/restore.ts';
import {
  allSubmissions,
  Ledger,
  openLedger,
  trackRequests,
} from '../support/ledger/ledger-file.ts';
import { startChild } from '../support/processes/child-process.ts';
import { tempFolder } from '../support/temp-folder.ts';

const OPEN = new URL('./open-child.ts', import.meta.url);
const UNPRIVILEGED = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

function problemOfOpening(file: string): string {
  try {
    new Ledger({ file, now: 0 }).close();
    return 'none';
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error;
    expect(error.message).toContain(file);
    return error.problem;
  }
}

describe('opening', () => {
  it('creates the file and its folders, with full synchronization', () => {
    const file = join(tempFolder(), 'some', 'where', 'dawatch.db');
    const { db, close } = openDatabase({ file, now: 0 });
    onTestFinished(close);
    expect(db.pragma('journal_mode', { simple: true })).toBe('wal');
    expect(db.pragma('synchronous', { simple: true })).toBe(2);
    expect(db.pragma('foreign_keys', { simple: true })).toBe(1);
    expect(existsSync(file)).toBe(true);
  });
});

describe('one server per ledger', () => {
  it('a second one that opens the file by another name is refused, too', () => {
    const ledger = openLedger();
    const alias = join(dirname(ledger.file), 'alias.db');
    symlinkSync(ledger.file, alias);
    expect(problemOfOpening(alias)).toBe('locked');
    expect(problemOfOpening(`${ledger.file} `)).toBe('locked');
    expect(problemOfOpening(join(dirname(ledger.file), '.', 'dawatch.db'))).toBe('locked');
  });

  it('another process is refused until the first one is killed', async () => {
    const file = join(tempFolder(), 'dawatch.db');
    const holder = startChild(OPEN, [file]);
    expect(await holder.message()).toEqual({ opened: true });
    expect(problemOfOpening(file)).toBe('locked');
    const second = startChild(OPEN, [file]);
    expect(await second.message()).toMatchObject({ opened: false, problem: 'locked' });
    await holder.kill();
    expect(problemOfOpening(file)).toBe('none');
  });

  it('a hard link is refused by every command, whose log would be another one', async () => {
    const ledger = openLedger();
    const alias = join(tempFolder(), 'alias.db');
    linkSync(ledger.file, alias);
    const message = /second name, a hard link: find it with/;
    expect(() => new Ledger({ file: alias, now: 0 })).toThrow(message);
    expect(() => openBeside({ file: alias, now: 0 })).toThrow(message);
    await expect(backupLedger(alias, join(tempFolder(), 'copy.db'))).rejects.toThrow(message);
    ledger.close();
    expect(() => new Ledger({ file: ledger.file, now: 0 })).toThrow(message);
    rmSync(alias);
    expect(problemOfOpening(ledger.file)).toBe('none');
  });

  it('without the lock file, a start needs a confirmation, and a running server then writes nothing', () => {
    const first = openLedger();
    first.claim(0);
    rmSync(`${first.file}.lock`);
    first.track(trackRequests(1, 'before'), 0);
    confirm(() => new Ledger({ file: first.file, now: 0 }), /\.lock was removed/);
    const second = openLedger({ file: first.file });
    expect(second.claim(0).isCopy).toBe(true);
    expect(() => first.track(trackRequests(1, 'first'), 0)).toThrow(/another dawatch uses/);
    second.track(trackRequests(1, 'second'), 0);
    expect(allSubmissions(second).map(({ submissionId }) => submissionId)).toEqual([
      'second0',
      'before0',
    ]);
  });
});

it.each([
  ['its claim', () => undefined],
  [
    'a copy',
    (file: string) => renameSync(`${file}.primary`, `${file}.replaced-20260102T030405.000Z`),
  ],
])('where %s shows that a ledger was, a start needs a confirmation', (_, prepare) => {
  const ledger = openLedger();
  ledger.claim(0);
  ledger.close();
  rmSync(ledger.file);
  prepare(ledger.file);
  const open = () => new Ledger({ file: ledger.file, now: 0 });
  confirm(open, /is left of one: restore a backup or a copy/);
  open().close();
});

/** Runs the command that the refusal names. */
function confirm(open: () => unknown, message: RegExp): void {
  expect(open).toThrow(message);
  let command = '';
  try {
    open();
  } catch (error) {
    command = /confirm .*with `(.+)`/.exec(String(error))?.[1] ?? '';
  }
  execSync(command);
}

describe('a place that cannot be written', () => {
  it('a folder that belongs to another user is refused with the name of the file', async () => {
    const folder = join(tempFolder(), 'theirs');
    mkdirSync(folder, { mode: 0o555 });
    chmodSync(dirname(folder), 0o755);
    const child = startChild(OPEN, [join(folder, 'dawatch.db')], UNPRIVILEGED);
    const response = await child.message();
    expect(response).toMatchObject({ opened: false, problem: 'read_only' });
    expect(response).toHaveProperty(
      'message',
      expect.stringMatching(
        /cannot write .*dawatch.db: check that its folder exists and that this user may write there/,
      ),
    );
    expect(existsSync(join(folder, 'dawatch.db'))).toBe(false);
  });

  it.each(['dawatch.db', 'dawatch.db.lock'])(
    'a read-only %s is refused before anything is acknowledged',
    async (name) => {
      const folder = join(tempFolder(), 'mine');
      const file = join(folder, 'dawatch.db');
      openLedger({ file }).close();
      for (const path of [dirname(folder), folder, file, `${file}.lock`]) {
        if (UNPRIVILEGED.uid !== undefined) chownSync(path, UNPRIVILEGED.uid, UNPRIVILEGED.gid);
      }
      chmodSync(join(folder, name), 0o444);
      const before = readFileSync(file);
      const child = startChild(OPEN, [file], UNPRIVILEGED);
      expect(await child.message()).toMatchObject({ opened: false, problem: 'read_only' });
      await child.kill();
      expect(readFileSync(file).equals(before)).toBe(true);
    },
  );

  it.runIf(UNPRIVILEGED.uid !== undefined)(
    'a lock file of another user is named, with that user',
    async () => {
      const folder = join(tempFolder(), 'mixed');
      const file = join(folder, 'dawatch.db');
      openLedger({ file }).close();
      chmodSync(dirname(folder), 0o755);
      for (const path of [folder, file]) chownSync(path, 65_534, 65_534);
      const child = startChild(OPEN, [file], UNPRIVILEGED);
      expect(await child.message()).toMatchObject({
        problem: 'read_only',
        message: expect.stringContaining(`${file}.lock belongs to another user, 0:`),
      });
    },
  );

  it('a folder at the path of the file, and a file at the path of the folder, are refused', () => {
    const folder = tempFolder();
    mkdirSync(join(folder, 'folder'));
    expect(problemOfOpening(join(folder, 'folder'))).toBe('read_only');
    writeFileSync(join(folder, 'file'), '');
    expect(problemOfOpening(join(folder, 'file', 'dawatch.db'))).toBe('read_only');
  });
});
