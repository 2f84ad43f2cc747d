import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { LedgerDatabase } from '../../src/ledger/ledger-database.ts';
import { LogSync } from '../../src/ledger/log-sync.ts';
import { openDatabase } from '../../src/ledger/open.ts';
import { Ledger } from '../../src/wiring/ledger-stores.ts';
import { context, observation } from '../support/ledger/domain.ts';
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
  it('is copied in another thread, too, if nothing of it has to reach the disk', async () => {
    const { db, close } = openDatabase({ file: join(tempFolder(), 'dawatch.db'), now: 0 });
    onTestFinished(close);
    const database = new LedgerDatabase(
      db,
      db.name,
      new LogSync(db, { onFailed: () => undefined }),
    );
    const text = 'x'.repeat(5_000_000);
    database.unsyncedTransaction(
      () => database.run`INSERT INTO meta (key, value) VALUES ('large', ${text})`,
    );
    const beside = rawConnection(db.name);
    await vi.waitFor(() => {
      const [state] = beside.pragma('wal_checkpoint(NOOP)') as {
        log: number;
        checkpointed: number;
      }[];
      expect(state?.log).toBeGreaterThan(1_000);
      expect(state?.checkpointed).toBe(state?.log);
    }, 30_000);
    expect(database.whenDurable()).toBeUndefined();
  });

  it('is not copied again and again while a reader needs its earlier content', async () => {
    const { ledger } = await openDeferred();
    const reader = rawConnection(ledger.file);
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM meta').get();
    let checkpoints = 0;
    const { postMessage } = Worker.prototype;
    Worker.prototype.postMessage = function (...args) {
      checkpoints += 1;
      return postMessage.apply(this, args);
    };
    onTestFinished(() => void Object.assign(Worker.prototype, { postMessage }));
    const metadata = { note: 'x'.repeat(15_000) };
    ledger.track(
      trackRequests(600).map((request) => ({ ...request, metadata })),
      1,
    );
    for (let turn = 0; turn < 300; turn++) {
      ledger.probe(turn + 1);
      await ledger.whenDurable();
      await wait(2);
    }
    expect(checkpoints).toBeGreaterThan(0);
    expect(checkpoints).toBeLessThan(50);
  });

  it('is copied to the ledger in another thread, and begun again at a bounded size', async () => {
    const { ledger } = await openDeferred();
    const beside = rawConnection(ledger.file);
    const state = () =>
      (beside.pragma('wal_checkpoint(NOOP)') as { log: number; checkpointed: number }[])[0];
    const metadata = { note: 'x'.repeat(15_000) };
    let largest = 0;
    for (let turn = 0; turn < 20; turn++) {
      ledger.track(
        trackRequests(300, `t${turn}-`).map((request) => ({ ...request, metadata })),
        1,
      );
      await ledger.whenDurable();
      await vi.waitFor(() => {
        // A copy that the reader of this test prevented is repeated after a later commit.
        ledger.probe(1);
        const { log = 0, checkpointed = 0 } = state() ?? {};
        expect(log - checkpointed).toBeLessThan(2_000);
      }, 15_000);
      largest = Math.max(largest, state()?.log ?? 0);
    }
    expect(statSync(ledger.file).size).toBeGreaterThan(20_000 * PAGE_BYTES);
    expect(largest).toBeLessThan(20_000);
    expect(integrityOf(ledger.file)).toBe('ok');
  });

  it('is not copied without a sync of the ledger, whose failure ends the process', async () => {
    const { ledger, failures } = await openDeferred();
    const { emit } = Worker.prototype;
    Worker.prototype.emit = function (this: Worker, event: string, ...args: unknown[]) {
      const failed = {
        error: { message: 'EIO: i/o error, fdatasync', code: 'EIO' },
        isFailedSync: true,
      };
      return emit.call(this, event, ...(event === 'message' ? [failed] : args));
    } as typeof emit;
    onTestFinished(() => void Object.assign(Worker.prototype, { emit }));
    trackLarge(ledger);
    await vi.waitFor(() => expect(failures).toHaveLength(1), 30_000);
    expect(failures[0]).toMatchObject({ problem: 'io' });
    await expect(ledger.whenDurable()).rejects.toBe(failures[0]);
    expect(existsSync(`${ledger.file}.sync-failed`)).toBe(true);
  });
});

/** Tracks so much that a checkpoint starts. */
function trackLarge(ledger: Ledger): void {
  const metadata = { note: 'x'.repeat(15_000) };
  ledger.track(
    trackRequests(600).map((request) => ({ ...request, metadata })),
    1,
  );
}
