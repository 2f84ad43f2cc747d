import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { LedgerError } from '../../src/ledger/errors.ts';
import type { HttpResult } from '../../src/lib/http-call.ts';
import type { Status } from '../../src/submissions/submission.ts';
import { rawConnection } from '../support/ledger/ledger-file.ts';
import { tempFolder } from '../support/temp-folder.ts';
import {
  databaseDown,
  finalized,
  MINUTE_MS,
  notFound,
  openWatcher,
  pending,
  recordNotFound,
  response,
  START_MS,
  unauthorized,
} from '../support/virtual-time/virtual-watcher.ts';

type World = ReturnType<typeof openWatcher>;

/**
 * Ids whose last polls wait for the request budget, and become final just before their deadline.
 * `answer`: the next response only.
 */
async function openDelayed(count: number) {
  let next: HttpResult | undefined;
  let current: HttpResult = pending;
  const world = openWatcher({
    respond: () => {
      const answer = next ?? current;
      next = undefined;
      return answer;
    },
    scheduler: { budget: { requests: 10, perMs: MINUTE_MS, concurrency: 10 } },
  });
  const ids = Array.from({ length: count }, (_, index) => `id-${index}`);
  world.track(ids, deadline(5_000));
  await world.clock.advance(4_000);
  current = finalized;
  return {
    clock: world.clock,
    answer(response: HttpResult) {
      next = response;
    },
    isAnswered: () => next === undefined,
    open: () => ids.filter((id) => world.get(id).status !== 'finalized'),
  };
}

const failing = response(200, { state: 'Error', error: 'TIMEOUT', data: null });

/** The final status of a submission and when it ended, in milliseconds since the start. */
function endOf(world: World, id: string) {
  const last = world.ledger.submissions.getWithHistory(id)?.history.at(-1);
  return [last?.status, (last?.at ?? 0) - START_MS];
}

const deadline = (ms: number) => ({ deadlineAt: START_MS + ms });

describe('when a deadline has passed, one last poll decides', () => {
  it.each<[string, HttpResult, Status]>([
    ['Finalized', finalized, 'finalized'],
    ['Pending', pending, 'expired'],
    ['Error', failing, 'failed'],
    ['an unknown id (404)', notFound, 'expired'],
    ['an unknown id (500 "Record not found")', recordNotFound, 'expired'],
  ])('%s', async (_what, later, status) => {
    let current: HttpResult = pending;
    const world = openWatcher({ respond: () => current });
    world.track(['never'], deadline(1));
    await world.clock.advance(60);
    current = status === 'expired' && later !== pending ? recordNotFound : pending;
    world.track(['a', 'b'], deadline(10 * MINUTE_MS));
    await world.clock.advance(10 * MINUTE_MS - 100);
    current = later;
    await world.clock.advance(1_000);
    expect([endOf(world, 'a'), endOf(world, 'b')]).toEqual(
      Array(2).fill([status, expect.closeTo(10 * MINUTE_MS, -2)]),
    );
  });

  it('also if nothing could be polled at that time, because the server did not run', async () => {
    let current: HttpResult = notFound;
    const world = openWatcher({ respond: () => current });
    world.track(['a', 'b'], deadline(5 * MINUTE_MS));
    await world.clock.advance(MINUTE_MS);
    current = finalized;
    await world.isDownFor(60 * MINUTE_MS);
    await world.clock.advance(5_000);
    expect(['a', 'b'].map((id) => world.get(id).status)).toEqual(['finalized', 'finalized']);
  });

  it('also if nothing could be polled at that time, because the disk was full', async () => {
    let current: HttpResult = notFound;
    const world = openWatcher({ respond: () => current });
    world.track(['a', 'b'], deadline(5 * MINUTE_MS));
    await world.clock.advance(MINUTE_MS);
    const { ledger } = world;
    const { record, expire } = ledger.store;
    const { setPolling } = ledger.upstreams;
    const full = () => {
      throw new LedgerError('full', 'the disk is full');
    };
    Object.assign(ledger.store, { record: full, expire: full });
    Object.assign(ledger.upstreams, { setPolling: full });
    await world.clock.advance(10 * MINUTE_MS);
    current = finalized;
    Object.assign(ledger.store, { record, expire });
    Object.assign(ledger.upstreams, { setPolling });
    await world.clock.advance(5_000);
    expect(['a', 'b'].map((id) => world.get(id).status)).toEqual(['finalized', 'finalized']);
  });

  it('also of an import whose deadline has passed', async () => {
    const world = openWatcher({ respond: () => finalized });
    world.track(['other']);
    await world.clock.advance(10 * MINUTE_MS);
    world.track(['a'], { trackedAt: START_MS - MINUTE_MS, deadlineAt: START_MS + 5 * MINUTE_MS });
    await world.clock.advance(1_000);
    expect(world.get('a').status).toBe('finalized');
  });

  it('also if the request budget delays it', async () => {
    const { clock, open } = await openDelayed(50);
    await clock.advance(6 * MINUTE_MS);
    expect(open()).toEqual([]);
  });

  it('also if the upstream asks for a short pause, while the request budget delays it', async () => {
    const { clock, open, answer } = await openDelayed(50);
    await clock.advance(2 * MINUTE_MS);
    answer(response(429, 'slow down', { retryAfter: '5' }));
    await clock.advance(6 * MINUTE_MS);
    expect(open(), 'at most the one that was told to wait').toHaveLength(1);
  });

  it('again within a minute, if it fails after the request budget has delayed it', async () => {
    const { clock, open, answer, isAnswered } = await openDelayed(25);
    await clock.advance(2.5 * MINUTE_MS);
    answer(databaseDown);
    await clock.advance(3 * MINUTE_MS);
    expect(isAnswered(), 'was sent').toBe(true);
    expect(open()).toEqual([]);
  });

  it('is the next poll, if no earlier one is planned', async () => {
    const world = openWatcher({ respond: () => pending });
    world.track(['a'], deadline(60 * MINUTE_MS));
    await world.clock.advance(59.7 * MINUTE_MS);
    expect(world.monitor.nextPollAt(world.get('a'))).toBe(START_MS + 60 * MINUTE_MS);
  });
});

describe('without an answer within a minute after the deadline, the submission ends', () => {
  it.each<[string, HttpResult | Promise<HttpResult>]>([
    ['a failure of this id alone', databaseDown],
    ['a page instead of an envelope', response(200, '<html>')],
    ['a refusal of this request', response(400, 'Bad Request')],
    ['no response', new Promise(() => undefined)],
  ])('%s', async (_what, respond) => {
    // Others keep the upstream up.
    const world = openWatcher({ respond: (id) => (id.startsWith('other') ? pending : respond) });
    world.track(['other-1', 'other-2', 'other-3', 'other-4', 'other-5', 'other-6']);
    world.track(['a'], deadline(8_000));
    await world.clock.advance(8_000 + MINUTE_MS - 1);
    expect(world.get('a').status).toBe('tracking');
    // A poll in flight is awaited.
    await world.clock.advance(31_000);
    expect(world.get('a')).toMatchObject({
      status: 'expired',
      error: expect.stringMatching(/^the upstream has not answered since 2025-/),
    });
    expect(world.turns).toEqual([]);
  });

  it.each<[string, HttpResult, string]>([
    ['an outage', databaseDown, 'HTTP 500 Database'],
    ['a refused key', unauthorized, 'HTTP 401'],
    ['a pause', response(429, 'slow down', { retryAfter: '3600' }), 'HTTP 429 slow down'],
  ])('%s, and the reason names the last response', async (_what, trouble, reason) => {
    let current: HttpResult = pending;
    const world = openWatcher({ respond: () => current });
    world.track(['a', 'b', 'c', 'd', 'e', 'f'], deadline(10 * MINUTE_MS));
    await world.clock.advance(8 * MINUTE_MS);
    const before = world.clock.now();
    current = trouble;
    await world.clock.advance(3 * MINUTE_MS - 1);
    expect(world.get('a').status).toBe('pending');
    await world.clock.advance(2);
    const { status, error } = world.get('a');
    expect([status, error]).toEqual(['expired', expect.stringContaining(reason)]);
    const since = Date.parse(/since (\S+):/.exec(error ?? '')?.[1] ?? '');
    if (trouble !== current || reason.includes('429')) return;
    expect(since - before, 'since the first failure').toBeLessThan(40_000);
  });

  it('also if the rows of a hundred others, whose deadlines are earlier, are damaged', async () => {
    const file = join(tempFolder(), 'ledger.db');
    const failures: unknown[] = [];
    const listener = { writeFailed: (error: unknown) => failures.push(error) };
    const world = openWatcher({ file, respond: () => databaseDown, listener });
    const ids = Array.from({ length: 100 }, (_, index) => `damaged-${index}`);
    world.track(ids, deadline(1_000));
    world.track(['a'], deadline(1_001));
    const db = rawConnection(file);
    db.prepare("UPDATE submissions SET tracked_at = 9e15 WHERE submission_id <> 'a'").run();
    db.close();
    await world.clock.advance(2 * MINUTE_MS);
    expect(world.get('a').status).toBe('expired');
    await world.clock.advance(MINUTE_MS);
    expect(failures.length, 'bounded').toBeLessThan(400);
  });
});

describe('a deadline that is changed', () => {
  it.each([1_000, 30_000])('to one in %i ms ends the submission then', async (ms) => {
    const world = openWatcher({ respond: () => notFound });
    world.track(['a']);
    await world.clock.advance(5 * MINUTE_MS);
    expect(world.update('a', { deadlineAt: START_MS })?.kind, 'the past').toBe('late');
    world.update('a', { deadlineAt: world.clock.now() + ms });
    await world.clock.advance(MINUTE_MS);
    expect(endOf(world, 'a')).toEqual(['expired', expect.closeTo(5 * MINUTE_MS + ms, -2)]);
  });

  it('to a later one ends the submission at the later one, also after a restart', async () => {
    const world = openWatcher({ respond: () => pending });
    world.track(['a'], deadline(MINUTE_MS));
    world.update('a', { deadlineAt: START_MS + 3 * MINUTE_MS });
    await world.clock.advance(2 * MINUTE_MS);
    expect(world.get('a').status).toBe('pending');
    world.restart();
    await world.clock.advance(2 * MINUTE_MS);
    expect(endOf(world, 'a')).toEqual(['expired', expect.closeTo(3 * MINUTE_MS, -2)]);
  });

  it('by tracking the submission again holds from then on', async () => {
    const world = openWatcher({ respond: () => notFound });
    world.track(['a'], deadline(8_000));
    await world.clock.advance(MINUTE_MS);
    world.track(['a'], { ...deadline(MINUTE_MS + 8_000), retrack: true });
    await world.clock.advance(MINUTE_MS);
    expect(endOf(world, 'a')).toEqual(['expired', expect.closeTo(MINUTE_MS + 8_000, -2)]);
  });
});
