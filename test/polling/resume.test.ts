import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { LEARNS_NOTHING } from '../../bench/pacing/rules.ts';
import { LedgerError } from '../../src/ledger/errors.ts';
import type { Entry } from '../../src/polling/poll-queues.ts';
import { UpstreamStore } from '../../src/submissions/upstream.ts';
import { Ledger, trackRequest } from '../support/ledger/ledger-file.ts';
import { tempFolder } from '../support/temp-folder.ts';
import {
  finalized,
  MINUTE_MS,
  openWatcher,
  pending,
  START_MS,
} from '../support/virtual-time/virtual-watcher.ts';

/** More than one page. */
const MANY = 6_000;
const PIECE = 5_000;
const NEVER_DUE = START_MS + 600 * MINUTE_MS;
const ids = Array.from({ length: MANY }, (_, index) => `id-${index}`);

let large: Buffer | undefined;

/** The file of a ledger with this number of open submissions that were never polled. */
function largeFile(): Buffer {
  const file = join(tempFolder(), 'ledger.db');
  const ledger = new Ledger({ file, now: START_MS });
  const at = START_MS + 600 * MINUTE_MS;
  ledger.upstream('default');
  const limits = { deadlineAt: at, graceEndsAt: at, stuckAt: at };
  ledger.track(
    ids.map((id) => trackRequest(id, limits)),
    START_MS,
  );
  ledger.close();
  return readFileSync(file);
}

/** A watcher that has just started on such a ledger. */
function openLarge(options: Partial<Parameters<typeof openWatcher>[0]> = {}) {
  const file = join(tempFolder(), 'ledger.db');
  large ??= largeFile();
  writeFileSync(file, large);
  const world = openWatcher({ respond: () => pending, ...options, file });
  return Object.assign(world, {
    tracked: () => world.monitor.pacing()[0]?.tracked,
    countOf: (id: string) => world.polls.filter(({ submissionId }) => submissionId === id).length,
  });
}

test('after a restart open submissions are registered page by page, and polling begins after the last page', async () => {
  const world = openLarge();
  expect([world.tracked(), world.polls.length]).toEqual([PIECE, 0]);
  await world.clock.advance(0);
  expect([world.tracked(), world.polls.length]).toEqual([MANY, 50]);
});

test('submissions tracked meanwhile are registered after the others, and one cancelled meanwhile is never polled', async () => {
  const last = ['id-5998', 'id-5999', 'new'];
  const world = openLarge({
    respond: () => finalized,
    policy: () => ({
      ...LEARNS_NOTHING,
      register: (item) => (last.includes((item as Entry).submissionId) ? START_MS : NEVER_DUE),
      learn: () => NEVER_DUE,
    }),
  });
  world.trackAll([trackRequest('new', { deadlineAt: START_MS + 600 * MINUTE_MS })]);
  world.trackAll([trackRequest('id-5999')]);
  world.cancel(['id-5998']);
  expect(world.tracked()).toBe(PIECE);
  await world.clock.advance(MINUTE_MS);
  expect(last.map(world.countOf)).toEqual([0, 1, 1]);
  // Without the cancelled one and the final ones.
  expect(world.tracked()).toBe(MANY + 1 - 3);
});

test('an on-demand poll waits until all submissions are registered, and is sent once', async () => {
  const world = openLarge({
    scheduler: { budget: { requests: 1, perMs: 1_000, concurrency: 1 } },
  });
  const poll = world.monitor.pollOnDemand('default', 'id-5999');
  expect(world.polls).toEqual([]);
  await world.clock.advance(2_000);
  expect((await poll).kind).toBe('observed');
  expect([world.countOf('id-5999'), world.get('id-5999').polls]).toEqual([1, 1]);
});

test('a page that cannot be read is read again; until then health reports it, and no submission is lost', async () => {
  const failures: unknown[] = [];
  const world = openLarge({
    listener: { writeFailed: (error) => failures.push(error) },
  });
  const read = vi.spyOn(world.ledger.submissions, 'listWatched').mockImplementation(() => {
    throw new LedgerError('corrupt', 'the disk failed');
  });
  await world.clock.advance(5_000);
  world.trackAll([trackRequest('new', { deadlineAt: world.clock.now() + 600 * MINUTE_MS })]);
  await world.clock.advance(5_000);
  expect(failures.length).toBeGreaterThan(5);
  expect([world.monitor.health().ledgerWritable, world.polls.length]).toEqual([false, 0]);
  read.mockRestore();
  await world.clock.advance(1_000);
  expect([world.monitor.health().ledgerWritable, world.tracked()]).toEqual([true, MANY + 1]);
});

/** From now on, new processes find the disk full. */
function fillDisk() {
  return vi.spyOn(UpstreamStore.prototype, 'get').mockImplementation(() => {
    throw new LedgerError('full', 'the disk is full');
  });
}

test('a watcher that starts while the disk is full begins to poll when there is space', async () => {
  const failures: unknown[] = [];
  const world = openWatcher({
    respond: () => finalized,
    listener: { writeFailed: (error) => failures.push(error) },
  });
  world.track(['a']);
  const full = fillDisk();
  world.restart();
  world.polls.length = 0;
  await world.clock.advance(10_000);
  expect(failures.length).toBeGreaterThan(5);
  expect(world.monitor.health().ledgerWritable).toBe(false);
  expect([world.monitor.notPolling(), world.polls.length]).toEqual([['default'], 0]);
  full.mockRestore();
  await world.clock.advance(1_000);
  expect(world.monitor.health().ledgerWritable).toBe(true);
  expect(world.monitor.notPolling()).toEqual([]);
  await world.clock.advance(10 * MINUTE_MS);
  expect(world.get('a').status).toBe('finalized');
});

test('a stop ends the registration: nothing is read or polled afterwards', async () => {
  const world = openLarge();
  const read = vi.spyOn(world.ledger.submissions, 'listWatched');
  const stopped = world.monitor.stop(1_000);
  await world.clock.advance(10 * MINUTE_MS);
  await stopped;
  expect([read.mock.calls.length, world.polls.length, world.clock.pending]).toEqual([0, 0, 0]);
});
