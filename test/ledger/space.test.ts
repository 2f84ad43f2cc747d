import { statSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { shrink } from '../../src/ledger/space.ts';
import { context, observation } from '../support/ledger/domain.ts';
import {
  integrityOf,
  type Ledger,
  openLedger,
  rawConnection,
  trackRequests,
} from '../support/ledger/ledger-file.ts';
import { HOUR_MS, openMaintenance } from '../support/ledger/maintenance.ts';

const MIB = 1_048_576;
const metadata = { filler: 'x'.repeat(16_000) };

function fill(ledger: Ledger, count: number, prefix = 's'): void {
  ledger.track(
    trackRequests(count, prefix).map((request) => ({ ...request, metadata })),
    0,
  );
}

function finalizeAll(ledger: Ledger, count: number): void {
  const ids = trackRequests(count).map(({ submissionId }) => submissionId);
  ledger.record(
    ids.map((id) => observation('finalized', 1, id)),
    context(),
  );
}

describe('the file', () => {
  it('of a new ledger shrinks after pruning', async () => {
    const ledger = openLedger();
    fill(ledger, 400);
    finalizeAll(ledger, 400);
    expect(statSync(ledger.file).size + ledger.stats.bytes().wal).toBeGreaterThan(6 * MIB);
    const { clock, errors } = openMaintenance(ledger, { submissionsMs: HOUR_MS }, 3 * HOUR_MS);
    await clock.advance(4 * 60_000);
    rawConnection(ledger.file).pragma('wal_checkpoint(TRUNCATE)');
    expect(ledger.search.list({ limit: 10 }).submissions).toHaveLength(1);
    expect(statSync(ledger.file).size).toBeLessThan(2 * MIB);
    expect(integrityOf(ledger.file)).toBe('ok');
    expect(errors).toEqual([]);
  });

  it('of a ledger that another program rewrote may stay large, and maintenance goes on', async () => {
    const first = openLedger();
    first.close();
    const db = rawConnection(first.file);
    db.exec('PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM');
    db.close();
    const ledger = openLedger({ file: first.file });
    fill(ledger, 400);
    finalizeAll(ledger, 400);
    const { clock, pruned } = openMaintenance(ledger, { submissionsMs: HOUR_MS }, 3 * HOUR_MS);
    await clock.advance(4 * 60_000);
    expect(pruned).toMatchObject([{ submissions: 399 }]);
  });

  it('keeps a few free pages for future writes', () => {
    const ledger = openLedger();
    fill(ledger, 5);
    expect(shrink(ledger.database, 100)).toBe(false);
  });
});

it('the write-ahead log is shortened by the next commits once no reader uses it', () => {
  const ledger = openLedger();
  const reader = rawConnection(ledger.file);
  reader.exec('BEGIN; SELECT count(*) FROM submissions');
  for (let turn = 0; turn < 14; turn++) fill(ledger, 300, `t${turn}-`);
  const grown = ledger.stats.bytes().wal;
  expect(grown).toBeGreaterThan(64 * MIB);
  fill(ledger, 1, 'with the reader');
  expect(ledger.stats.bytes().wal).toBeGreaterThanOrEqual(grown);
  reader.exec('COMMIT');
  for (const prefix of ['copies', 'begins']) fill(ledger, 1, prefix);
  expect(ledger.stats.bytes().wal).toBe(64 * MIB);
});
