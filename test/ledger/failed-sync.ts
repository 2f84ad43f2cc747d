import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { openLedger, trackRequests } from '../support/ledger/ledger-file.ts';
import { tempFolder } from '../support/temp-folder.ts';

export const COUNT = 500;
export const IDS = trackRequests(COUNT).map(({ submissionId }) => submissionId);
export const MARKER = '.sync-failed';

/** Leaves what a server leaves whose sync failed: a log with content, and the marker. */
export function leaveFailed(folder: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, 'dawatch.db');
  const from = join(tempFolder(), 'dawatch.db');
  const ledger = openLedger({ file: from });
  ledger.track(trackRequests(COUNT), 1);
  for (const suffix of ['', '-wal'])
    writeFileSync(file + suffix, readFileSync(from + suffix), { mode: 0o600 });
  writeFileSync(file + MARKER, 'EIO');
  expect(readFileSync(`${file}-wal`).length).toBeGreaterThan(100_000);
  return file;
}
