import { statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { LedgerError } from '../../src/ledger/errors.ts';
import { vacuumLedger } from '../../src/ledger/vacuum.ts';
import {
  integrityOf,
  openLedger,
  rawConnection,
  trackRequests,
} from '../support/ledger/ledger-file.ts';
import { tempFolder } from '../support/temp-folder.ts';

it('shrinks a ledger of an older version, which then returns free space by itself', () => {
  const ledger = openLedger();
  ledger.track(trackRequests(5_000), 0);
  ledger.close();
  const db = rawConnection(ledger.file);
  db.exec(
    "PRAGMA auto_vacuum = NONE; VACUUM; DELETE FROM history; DELETE FROM submissions WHERE submission_id <> 's7'",
  );
  db.close();
  const { before, after } = vacuumLedger(ledger.file, 0);
  expect(statSync(ledger.file).size).toBe(after);
  expect(after).toBeLessThan(before / 2);
  expect(rawConnection(ledger.file).pragma('auto_vacuum', { simple: true })).toBe(2);
  expect(integrityOf(ledger.file)).toBe('ok');
});

it('is refused without a ledger, and while a server uses it', () => {
  expect(() => vacuumLedger(join(tempFolder(), 'nowhere.db'), 0)).toThrow(/there is no ledger/);
  const { file } = openLedger();
  expect(() => vacuumLedger(file, 0)).toThrow(
    expect.objectContaining({ problem: 'locked' }) as LedgerError,
  );
});
