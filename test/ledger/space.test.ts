import { statSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { cutLog } from '../../src/ledger/log-file.ts';
import type { Ledger } from '../../src/wiring/ledger-stores.ts';
import { context, observation } from '../support/ledger/domain.ts';
import {
  integrityOf,
  openLedger,
  rawConnection,
  trackRequests,
} from '../support/ledger/ledger-file.ts';
import { HOUR_MS, openMaintenance } from '../support/ledger/maintenance.ts';
import { withAlerts } from '../support/ledger/report-ledger.ts';

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

/** Returns a ledger whose log is longer than 64 MiB, and the connection that reads all of it. */
function withLargeLog() {
  const ledger = openLedger();
  const reader = rawConnection(ledger.file);
  reader.exec('BEGIN; SELECT count(*) FROM submissions');
  for (let turn = 0; turn < 28; turn++) fill(ledger, 300, `t${turn}-`);
  const bytes = () => ledger.stats.bytes().wal;
  expect(bytes()).toBeGreaterThan(80 * MIB);
  return { ledger, reader, bytes };
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

  it('keeps a few free pages for future writes', () => {
    const ledger = openLedger();
    fill(ledger, 5);
    expect(ledger.space.shrink(100)).toBe(false);
  });
});

describe('the write-ahead log', () => {
  it('is measured, and shortened once no reader uses it', async () => {
    const ledger = openLedger();
    const { clock, errors } = openMaintenance(ledger, {});
    const reader = rawConnection(ledger.file);
    reader.exec('BEGIN; SELECT count(*) FROM submissions');
    for (let turn = 0; turn < 14; turn++) fill(ledger, 300, `t${turn}-`);
    const grown = ledger.stats.bytes().wal;
    expect(grown).toBeGreaterThan(64 * MIB);
    await clock.advance(61_000);
    expect(ledger.stats.bytes().wal).toBeGreaterThanOrEqual(grown);
    reader.exec('COMMIT');
    await clock.advance(60_000);
    expect(ledger.stats.bytes().wal).toBe(64 * MIB);
    expect(errors).toEqual([]);
  });

  it('is not filled further by pruning while a reader uses it', async () => {
    const ledger = openLedger();
    fill(ledger, 50);
    finalizeAll(ledger, 50);
    const reader = rawConnection(ledger.file);
    reader.exec('BEGIN; SELECT count(*) FROM submissions');
    for (let turn = 0; turn < 14; turn++) fill(ledger, 300, `t${turn}-`);
    expect(ledger.stats.bytes().wal).toBeGreaterThan(64 * MIB);
    const { clock, pruned, errors } = openMaintenance(
      ledger,
      { submissionsMs: HOUR_MS },
      3 * HOUR_MS,
    );
    await clock.advance(2 * 60_000);
    expect(pruned).toEqual([]);
    reader.exec('COMMIT');
    await clock.advance(2 * 60_000);
    expect(pruned).toEqual([{ submissions: 50, events: 0, deliveries: 0 }]);
    expect(errors).toEqual([]);
  });

  it('is copied by another thread before a server shortens it, and pruning waits for that', async () => {
    const ledger = openLedger({ deferredSync: { onFailed: () => undefined } });
    fill(ledger, 50);
    finalizeAll(ledger, 50);
    const reader = rawConnection(ledger.file);
    reader.exec('BEGIN; SELECT count(*) FROM submissions');
    for (let turn = 0; turn < 14; turn++) fill(ledger, 300, `t${turn}-`);
    await ledger.whenDurable();
    await vi.waitFor(() => expect(ledger.space.checkpoint(1)).toBe('held'), 30_000);
    const grown = ledger.stats.bytes().wal;
    reader.exec('COMMIT');
    await vi.waitFor(() => expect(ledger.space.checkpoint(1)).toBe('copying'), 30_000);
    expect(ledger.stats.bytes().wal).toBe(grown);
    const { clock, pruned, errors } = openMaintenance(
      ledger,
      { submissionsMs: HOUR_MS },
      3 * HOUR_MS,
    );
    await vi.waitFor(async () => {
      await clock.advance(60_000);
      expect(pruned).toEqual([{ submissions: 50, events: 0, deliveries: 0 }]);
    }, 30_000);
    expect(ledger.stats.bytes().wal).toBe(64 * MIB);
    expect(errors).toEqual([]);
  });

  it('is shortened in small steps, not at once by a commit, and loses nothing', () => {
    const { ledger, reader, bytes } = withLargeLog();
    reader.exec('COMMIT');
    reader.pragma('wal_checkpoint(PASSIVE)');
    const grown = bytes();
    ledger.probe(1);
    expect(bytes()).toBe(grown);
    const steps: number[] = [];
    for (let before = grown; ledger.space.checkpoint(2) === 'copying'; before = bytes())
      steps.push(before - bytes());
    expect(steps.length).toBeGreaterThan(0);
    expect(Math.max(...steps)).toBe(16 * MIB);
    expect(bytes()).toBe(64 * MIB);
    ledger.track(trackRequests(1, 'later-'), 3);
    expect(
      rawConnection(ledger.file).prepare('SELECT count(*) FROM submissions').pluck().get(),
    ).toBe(28 * 300 + 1);
    expect(integrityOf(ledger.file)).toBe('ok');
  });

  it('stays as it is while another connection writes', () => {
    const { ledger, reader, bytes } = withLargeLog();
    reader.exec('COMMIT');
    const grown = bytes();
    reader.exec('BEGIN IMMEDIATE');
    expect(ledger.space.checkpoint(1)).toBe('held');
    expect(bytes()).toBe(grown);
    reader.exec('COMMIT');
    expect(ledger.space.checkpoint(2)).toBe('copying');
    reader.exec('BEGIN IMMEDIATE');
    expect(ledger.space.checkpoint(3)).toBe('held');
    expect(bytes()).toBe(grown - 16 * MIB);
  });

  it('is not shortened after a restart before a commit has replaced its header', () => {
    const { ledger, reader, bytes } = withLargeLog();
    reader.exec('COMMIT');
    const grown = bytes();
    reader.pragma('wal_checkpoint(RESTART)');
    const sizes = { toBytes: 64 * MIB, stepBytes: MIB };
    expect(cutLog(reader, sizes)).toBe(false);
    expect(bytes()).toBe(grown);
    ledger.probe(1);
    expect(cutLog(reader, sizes)).toBe(true);
    expect(bytes()).toBe(grown - MIB);
  });

  it('is not shortened if another connection commits after its length was read', () => {
    const { ledger, reader, bytes } = withLargeLog();
    reader.exec('COMMIT');
    reader.pragma('wal_checkpoint(RESTART)');
    ledger.probe(1);
    const grown = bytes();
    const sizes = { toBytes: 64 * MIB, stepBytes: MIB };
    const begin = reader.exec.bind(reader);
    reader.exec = (sql) => {
      reader.exec = begin;
      ledger.probe(2);
      return begin(sql);
    };
    expect(cutLog(reader, sizes)).toBe(false);
    expect(bytes()).toBe(grown);
    expect(cutLog(reader, sizes)).toBe(true);
  });

  it('raises an alert while it is large', () => {
    const ledger = openLedger();
    const query = {
      upstreams: ['default'],
      failuresSince: 0,
      deadSince: 0,
      waitingBefore: 0,
      now: 0,
    };
    expect(withAlerts(ledger).alerts.facts(query).walBytes).toBe(ledger.stats.bytes().wal);
    expect(ledger.stats.bytes().wal).toBeGreaterThan(0);
  });
});
