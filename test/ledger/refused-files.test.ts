import { execFileSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { LedgerError } from '../../src/ledger/errors.ts';
import { Ledger, openLedger, trackRequests } from '../support/ledger/ledger-file.ts';
import { tempFolder } from '../support/temp-folder.ts';

const PAGE_BYTES = 4_096;

/**
 * Opens a file that must be refused; returns the error after asserting that no byte of it changed.
 */
function refusal(file: string): LedgerError {
  const before = readFileSync(file);
  try {
    new Ledger({ file, now: 0 }).close();
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error;
    expect(readFileSync(file).equals(before), 'the file was changed').toBe(true);
    expect(existsSync(`${file}-wal`)).toBe(false);
    expect(error.message).toContain(file);
    return error;
  }
  throw new Error('the file was opened');
}

/** Creates a closed ledger of many pages. */
function bigLedger(): string {
  const ledger = openLedger();
  ledger.track(trackRequests(2_000), 0);
  ledger.close();
  expect(statSync(ledger.file).size).toBeGreaterThan(100 * PAGE_BYTES);
  return ledger.file;
}

function overwrite(file: string, offset: number, bytes: Buffer): void {
  const descriptor = openSync(file, 'r+');
  writeSync(descriptor, bytes, 0, bytes.length, offset);
  closeSync(descriptor);
}

function altered(sql: string): string {
  const ledger = openLedger();
  ledger.close();
  const db = new Database(ledger.file);
  db.exec(sql);
  db.close();
  return ledger.file;
}

describe('a damaged file is refused and left unchanged', () => {
  it.each([
    ['garbage', Buffer.from('no database '.repeat(1_000))],
    ['a short text', Buffer.from('hello')],
  ])('%s', (_name, bytes) => {
    const file = join(tempFolder(), 'dawatch.db');
    writeFileSync(file, bytes);
    expect(refusal(file).problem).toBe('corrupt');
  });

  it('an overwritten page in the middle of the file', () => {
    const file = bigLedger();
    const page = Math.floor(statSync(file).size / PAGE_BYTES / 2);
    overwrite(file, page * PAGE_BYTES, Buffer.alloc(PAGE_BYTES, 0xa5));
    const { problem, message } = refusal(file);
    expect([problem, message]).toEqual([
      'corrupt',
      expect.stringMatching(/damaged.*restore a backup/),
    ]);
  });

  it('a file cut in half', () => {
    const file = bigLedger();
    writeFileSync(file, readFileSync(file).subarray(0, Math.floor(statSync(file).size / 2)));
    expect(refusal(file).problem).toBe('corrupt');
  });
});

it('the log of a damaged file stays as it is, too, as a repair may need it', () => {
  const file = bigLedger();
  const ledger = openLedger({ file });
  ledger.track(trackRequests(10, 'later-'), 0);
  // As a kill leaves them.
  const killed = join(tempFolder(), 'dawatch.db');
  for (const end of ['', '-wal']) copyFileSync(file + end, killed + end);
  overwrite(
    killed,
    Math.floor(statSync(file).size / PAGE_BYTES / 2) * PAGE_BYTES,
    Buffer.alloc(PAGE_BYTES, 0xa5),
  );
  const read = () => ['', '-wal'].map((end) => readFileSync(killed + end));
  const before = read();
  expect(before[1]?.length).toBeGreaterThan(PAGE_BYTES);
  expect(() => new Ledger({ file: killed, now: 0 })).toThrow('is damaged');
  expect(read()).toEqual(before);
});

describe('a file that is not a ledger is refused and left unchanged', () => {
  it.each(['delete', 'wal'])('the database of another program, in journal mode %s', (journal) => {
    const file = join(tempFolder(), 'other.db');
    const db = new Database(file);
    db.pragma(`journal_mode = ${journal}`);
    db.exec("CREATE TABLE theirs (text TEXT); INSERT INTO theirs VALUES ('precious')");
    db.close();
    expect(refusal(file).problem).toBe('foreign');
  });

  it('the ledger of a newer dawatch, with advice', () => {
    const { problem, message } = refusal(altered('PRAGMA user_version = 999'));
    expect(problem).toBe('foreign');
    expect(message).toMatch(/newer dawatch .*999.*upgrade/);
  });
});

it('a pipe or a device is refused, keeps its permissions, and nothing is written beside it', () => {
  const folder = tempFolder();
  const file = join(folder, 'dawatch.db');
  execFileSync('mkfifo', ['-m', '666', file]);
  expect(() => new Ledger({ file, now: 0 })).toThrow(`${file} is not a regular file`);
  expect(statSync(file).mode & 0o777).toBe(0o666);
  expect(readdirSync(folder)).toEqual(['dawatch.db']);
});

it('an empty file becomes a ledger', () => {
  const file = join(tempFolder(), 'dawatch.db');
  writeFileSync(file, '');
  expect(openLedger({ file }).search.list({ limit: 1 }).submissions).toEqual([]);
});
