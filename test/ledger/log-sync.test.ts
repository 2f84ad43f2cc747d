import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { LedgerDatabase } from '../../src/ledger/ledger-database.ts';
import { LogSync } from '../../src/ledger/log-sync.ts';
import { openDatabase } from '../../src/ledger/open.ts';
import { Ledger } from '../../src/wiring/ledger-stores.ts';
import { context, observation } from '../support/ledger/domain.ts';
import { holdSyncs } from '../support/ledger/held-syncs.ts';
import {
  integrityOf,
  openLedger,
  outboxOf,
  rawConnection,
  trackRequest,
  trackRequests,
} from '../support/ledger/ledger-file.ts';
import { tempFolder } from '../support/temp-folder.ts';

const PAGE_BYTES = 4_096;

async function openDeferred() {
  const failures: unknown[] = [];
  const ledger = openLedger({ deferredSync: { onFailed: (error) => failures.push(error) } });
  await ledger.whenDurable();
  return { ledger, failures };
}

function finalize(ledger: Ledger, id: string): void {
  ledger.track([trackRequest(id)], 1);
  ledger.record([observation('finalized', 2, id)], context());
}

describe('a commit whose sync is deferred', () => {
  it('shares the next sync with others that were committed during a sync', async () => {
    const { ledger } = await openDeferred();
    ledger.track([trackRequest('a')], 1);
    const first = ledger.whenDurable();
    ledger.track([trackRequest('b')], 1);
    const second = ledger.whenDurable();
    ledger.track([trackRequest('c')], 1);
    expect(second).not.toBe(first);
    expect(ledger.whenDurable()).toBe(second);
    await second;
    expect(ledger.whenDurable()).toBeUndefined();
  });

  it('is not awaited after a transaction that needs no sync, even a failed one', async () => {
    const { db, close } = openDatabase({ file: join(tempFolder(), 'dawatch.db'), now: 0 });
    onTestFinished(close);
    const database = new LedgerDatabase(
      db,
      db.name,
      new LogSync(db, { onFailed: () => undefined }),
    );
    const write = () => database.run`UPDATE meta SET value = value`;
    const fail = () => {
      write();
      throw new Error('no');
    };
    database.unsyncedTransaction(write);
    expect(() => database.unsyncedTransaction(fail)).toThrow('no');
    expect(() => database.transaction(fail)).toThrow('no');
    expect(database.whenDurable()).toBeUndefined();
    database.transaction(() => database.unsyncedTransaction(write));
    expect(database.whenDurable()).toBeInstanceOf(Promise);
    await database.whenDurable();
    write();
    expect(database.whenDurable()).toBeInstanceOf(Promise);
    await database.whenDurable();
  });

  it('shows its event, and its deliveries to be sent, once it is durable', async () => {
    const { ledger } = await openDeferred();
    const webhook = {
      url: 'https://example.com',
      types: ['submission.*'],
      metadata: null,
      description: '',
      enabled: true,
    };
    ledger.webhooks.create(
      { ...webhook, signature: 'v1' } as never,
      { secret: 'whsec_x', publicKey: null },
      1,
    );
    await ledger.whenDurable();
    const newest = ledger.events.newestSeq();
    const notified = { appended: 0, waiting: 0 };
    ledger.events.onAppended(() => (notified.appended += 1));
    ledger.deliveries.onWaiting(() => (notified.waiting += 1));
    finalize(ledger, 'a');
    const stored = outboxOf(ledger.file).length;
    expect(stored).toBeGreaterThan(0);
    expect(ledger.events.after(newest, 10)).toEqual([]);
    expect(ledger.events.newestSeq()).toBe(newest);
    expect(notified).toEqual({ appended: 0, waiting: 0 });
    await ledger.whenDurable();
    expect(ledger.events.after(newest, 10)).toHaveLength(stored);
    expect(ledger.events.newestSeq()).toBeGreaterThan(newest);
    expect(notified.appended).toBeGreaterThan(0);
    expect(notified.waiting).toBeGreaterThan(0);
  });

  it('is known as a change that is not on the disk until every change of its submission is', async () => {
    const { ledger } = await openDeferred();
    const request = trackRequest('a');
    const isUnsynced = () => ledger.isUnsynced(request as never);
    ledger.track([request], 1);
    await ledger.whenDurable();
    // One commit changes the submission twice.
    ledger.record([observation('pending', 2, 'a'), observation('finalized', 3, 'a')], context());
    const first = ledger.whenDurable();
    ledger.update('a', { metadata: { order: 1 } }, 4);
    const second = ledger.whenDurable();
    await first;
    expect([isUnsynced(), second === first]).toEqual([true, false]);
    await second;
    expect(isUnsynced()).toBe(false);
  });

  it('is on the disk after the ledger was closed, however early', async () => {
    const file = join(tempFolder(), 'dawatch.db');
    const ledger = new Ledger({ file, now: 0, deferredSync: { onFailed: () => undefined } });
    ledger.upstream('default');
    ledger.track([trackRequest('a')], 1);
    const durable = ledger.whenDurable();
    ledger.close();
    await durable;
    expect(existsSync(`${file}-wal`)).toBe(false);
    const again = openLedger({ file });
    expect(again.submissions.get('a')).toMatchObject({ status: 'tracking' });
  });
});

describe('the log of a ledger whose syncs are deferred', () => {
  it('is copied to the ledger, also if nothing of it has to reach the disk', () => {
    const { db, close } = openDatabase({ file: join(tempFolder(), 'dawatch.db'), now: 0 });
    onTestFinished(close);
    const database = new LedgerDatabase(
      db,
      db.name,
      new LogSync(db, { onFailed: () => undefined }),
    );
    writeUnsynced(database);
    const { pages, left } = logOf(db.name)();
    expect(pages).toBeGreaterThan(1_000);
    expect(left).toBe(0);
    expect(database.whenDurable()).toBeUndefined();
  });

  it('is not copied while the disk holds a sync, which would stop the event loop', async () => {
    const { ledger } = await openDeferred();
    const log = logOf(ledger.file);
    const syncs = holdSyncs(ledger.file);
    ledger.track([trackRequest('a')], 1);
    writeUnsynced(ledger.database);
    expect(log().left).toBeGreaterThan(1_000);
    syncs.release();
    await ledger.whenDurable();
    expect(log().left).toBe(0);
  });

  it('is not copied again and again while a reader needs its earlier content', async () => {
    const { ledger } = await openDeferred();
    const reader = rawConnection(ledger.file);
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM meta').get();
    const checkpoint = vi.spyOn(Database.prototype, 'pragma');
    onTestFinished(() => checkpoint.mockRestore());
    trackLarge(ledger);
    for (let turn = 0; turn < 300; turn++) {
      ledger.probe(turn + 1);
      await ledger.whenDurable();
      await wait(2);
    }
    expect(checkpoint).toHaveBeenCalled();
    expect(checkpoint.mock.calls.length).toBeLessThan(50);
  });

  it('is begun again after each copy, so that its size is bounded', async () => {
    const { ledger } = await openDeferred();
    const log = logOf(ledger.file);
    let largest = 0;
    for (let turn = 0; turn < 10; turn++) {
      trackLarge(ledger, `t${turn}-`);
      await ledger.whenDurable();
      const { pages, left } = log();
      expect(left).toBeLessThan(1_000);
      largest = Math.max(largest, pages);
    }
    expect(statSync(ledger.file).size).toBeGreaterThan(20_000 * PAGE_BYTES);
    expect(largest).toBeLessThan(5_000);
    expect(integrityOf(ledger.file)).toBe('ok');
  });

  it('is not copied without a sync of the ledger, whose failure ends the process', async () => {
    const { ledger, failures } = await openDeferred();
    const pragma = vi.spyOn(Database.prototype, 'pragma').mockImplementation(() => {
      throw new Database.SqliteError('disk I/O error', 'SQLITE_IOERR_FSYNC');
    });
    onTestFinished(() => pragma.mockRestore());
    trackLarge(ledger);
    await vi.waitFor(() => expect(failures).toHaveLength(1), 30_000);
    expect(failures[0]).toMatchObject({ problem: 'io' });
    await expect(ledger.whenDurable()).rejects.toBe(failures[0]);
    expect(existsSync(`${ledger.file}.sync-failed`)).toBe(true);
  });
});

/** Commits enough for a checkpoint in a transaction that is not synced. */
function writeUnsynced(database: LedgerDatabase): void {
  const text = 'x'.repeat(5_000_000);
  database.unsyncedTransaction(
    () => database.run`INSERT INTO meta (key, value) VALUES ('large', ${text})`,
  );
}

/** Returns a function that reads the pages of the log, and how many are not copied. */
function logOf(file: string) {
  const beside = rawConnection(file);
  return () => {
    const [{ log = 0, checkpointed = 0 } = {}] = beside.pragma('wal_checkpoint(NOOP)') as {
      log: number;
      checkpointed: number;
    }[];
    return { pages: log, left: log - checkpointed };
  };
}

/** Tracks so much that a checkpoint starts. */
function trackLarge(ledger: Ledger, prefix?: string): void {
  const metadata = { note: 'x'.repeat(15_000) };
  ledger.track(
    trackRequests(600, prefix).map((request) => ({ ...request, metadata })),
    1,
  );
}
