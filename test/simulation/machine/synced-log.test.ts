import { copyFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { tempFolder } from '../../support/temp-folder.ts';
import { createRandom } from './random.ts';
import { SyncedLog } from './synced-log.ts';

const [SYNCED, ALL] = [40, 60];
const SEEDS = Array.from({ length: 60 }, (_, seed) => seed);

/**
 * Commits the numbers from 1 on, and syncs the first ones. Returns how many are left after a loss
 * of power.
 */
function left(seed: number, checkpointAfter?: number): number {
  const folder = tempFolder();
  const [file, copy] = [join(folder, 'ledger.db'), join(folder, 'copy.db')];
  const db = new Database(file);
  db.pragma('journal_mode = WAL');
  db.exec('CREATE TABLE numbers (number INTEGER)');
  const log = new SyncedLog(`${file}-wal`);
  let bytes = 0;
  for (let number = 1; number <= ALL; number++) {
    if (number === checkpointAfter) {
      log.sync();
      db.pragma('wal_checkpoint(PASSIVE)');
      bytes = statSync(`${file}-wal`).size;
    }
    db.prepare('INSERT INTO numbers VALUES (?)').run(number);
    if (number <= SYNCED) log.sync();
  }
  // The log was begun again.
  if (checkpointAfter) expect(statSync(`${file}-wal`).size).toBe(bytes);
  for (const side of ['', '-wal']) copyFileSync(file + side, copy + side);
  log.losePower(`${copy}-wal`, copy, createRandom(seed, 'disk'));
  db.close();
  const after = new Database(copy);
  expect(after.pragma('integrity_check', { simple: true })).toBe('ok');
  const numbers = after.prepare('SELECT number FROM numbers ORDER BY number').pluck().all();
  after.close();
  expect(numbers).toEqual(Array.from(numbers, (_, index) => index + 1));
  return numbers.length;
}

it.each([
  ['a log', undefined],
  ['a log that was begun again', 35],
  ['a log that was begun again after the last sync', SYNCED + 1],
])(
  'a loss of power keeps what was synced of %s, and any part of the rest',
  (_name, checkpointAfter) => {
    const all = SEEDS.map((seed) => left(seed, checkpointAfter));
    expect(Math.min(...all)).toBe(SYNCED);
    expect(Math.max(...all)).toBe(ALL);
    expect(new Set(all).size).toBeGreaterThan(4);
    expect(left(7, checkpointAfter)).toBe(all[7]);
  },
);
