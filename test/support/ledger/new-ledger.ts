import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { openDatabase } from '../../../src/ledger/open.ts';

let template: Buffer | undefined;

/**
 * Creates an empty ledger in a private folder, unless something exists at this path. The migrations
 * run once per process instead of once per ledger: opening a new ledger takes 2 ms instead of 19
 * ms.
 */
export function createLedger(file: string): void {
  // In a shared folder, dawatch treats a new ledger differently from an existing one.
  if (!isPrivate(dirname(file))) return;
  template ??= emptyLedger();
  try {
    writeFileSync(file, template, { flag: 'wx', mode: 0o600 });
  } catch {
    // The test opens the file and gets the error.
  }
}

function isPrivate(folder: string): boolean {
  const stats = statSync(folder, { throwIfNoEntry: false });
  return stats !== undefined && (stats.mode & 0o077) === 0;
}

function emptyLedger(): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'dawatch-test-'));
  const file = join(folder, 'ledger.db');
  openDatabase({ file, now: 0 }).close();
  const db = new Database(file);
  // When the file was last opened.
  db.exec("DELETE FROM meta WHERE key = 'written_at'");
  db.close();
  const bytes = readFileSync(file);
  rmSync(folder, { recursive: true });
  return bytes;
}
