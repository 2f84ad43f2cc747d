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

const failing = response(200, { state: 'Error', error: 'TIMEOUT', data: null });
const throttled = response(429, '', { retryAfter: '60' });

/** The final status of a submission and when it ended, in milliseconds since the start. */
function endOf(world: World, id: string) {
  const last = world.ledger.submissions.getWithHistory(id)?.history.at(-1);
  return [last?.status, (last?.at ?? 0) - START_MS];
}

const deadline = (ms: number) => ({ deadlineAt: START_MS + ms });

describe('a deadline ends a submission at that time, whatever the upstream responds', () => {
  it.each<[string, HttpResult | Promise<HttpResult>, Status]>([
    ['an unknown id (404)', notFound, 'expired'],
    ['an unknown id (500 "Record not found")', recordNotFound, 'expired'],
    ['Pending', pending, 'expired'],
    ['Error', failing, 'failed'],
    ['a failure of this id alone', databaseDown, 'expired'],
    ['a page instead of an envelope', response(200, '<html>'), 'expired'],
    ['a refusal of this request', response(400, 'Bad Request'), 'expired'],
    ['no response', new Promise(() => undefined), 'expired'],
  ])('%s', async (_what, respond, status) => {
    // Others keep the upstream up.
    const world = openWatcher({ respond: (id) => (id.startsWith('other') ? pending : respond) });
    world.track(['other-1', 'other-2', 'other-3', 'other-4', 'other-5', 'other-6']);
    world.track(['a'], deadline(8_000));
    world.track(['b'], deadline(70_000));
    world.track(['c'], deadline(1_000));
    await world.clock.advance(2 * MINUTE_MS);
    expect(endOf(world, 'c')).toEqual([status, 1_000]);
    expect(endOf(world, 'a')).toEqual([status, 8_000]);
    expect(endOf(world, 'b')).toEqual([status, 70_000]);
  });

  it('also if the request budget allows no poll before it', async () => {
    const world = openWatcher({
      respond: () => pending,
      scheduler: { budget: { requests: 1, perMs: MINUTE_MS, concurrency: 1 } },
    });
    const ids = Array.from({ length: 250 }, (_, index) => `id-${index}`);
    world.track(ids, deadline(5_000));
    await world.clock.advance(5_010);
    expect(ids.filter((id) => world.get(id).status !== 'expired')).toEqual([]);
    expect(world.polls.length).toBe(1);
    expect(world.monitor.pacing()[0]?.tracked).toBe(0);
  });

  it('also if the rows of a hundred others, whose deadlines are earlier, are damaged', async () => {
    const file = join(tempFolder(), 'ledger.db');
    const failures: unknown[] = [];
    const listener = { writeFailed: (error: unknown) => failures.push(error) };
    const world = openWatcher({ file, respond: () => notFound, listener });
    const ids = Array.from({ length: 100 }, (_, index) => `damaged-${index}`);
    world.track(ids, deadline(1_000));
    world.track(['a'], deadline(1_001));
    const db = rawConnection(file);
    db.prepare("UPDATE submissions SET tracked_at = 9e15 WHERE submission_id <> 'a'").run();
    db.close();
    await world.clock.advance(2_000);
    expect(endOf(world, 'a')).toEqual(['expired', 1_001]);
    await world.clock.advance(MINUTE_MS);
    expect(failures.length, 'bounded').toBeLessThan(400);
  });

  it('and waiters know it at that time', async () => {
    const world = openWatcher({ respond: () => notFound });
    world.track(['a'], deadline(8_000));
    let endedAt = 0;
    void world.monitor
      .waitUntilFinal(() => world.get('a'), MINUTE_MS)
      .then(() => {
        endedAt = world.clock.now();
      });
    await world.clock.advance(9_000);
    expect(endedAt).toBe(START_MS + 8_000);
    expect(world.ledger.events.after(0, 9).map(({ type }) => type)).toEqual(['submission.expired']);
  });
});

describe('the last poll before a deadline', () => {
  it('decides: a submission that is final by then is finalized, also with a deadline of a second', async () => {
    let current: HttpResult = pending;
    const world = openWatcher({ respond: () => current });
    world.track(['a'], deadline(10 * MINUTE_MS));
    await world.clock.advance(10 * MINUTE_MS - 2_001);
    const polls = world.polls.length;
    current = finalized;
    world.track(['b'], { deadlineAt: world.clock.now() + 1_000 });
    await world.clock.advance(2_000);
    expect(world.polls.slice(polls).map(({ submissionId }) => submissionId)).toEqual(['b', 'a']);
    expect(['a', 'b'].map((id) => world.get(id).status)).toEqual(['finalized', 'finalized']);
  });

  it('is the next poll, if no earlier one is planned', async () => {
    const world = openWatcher({ respond: () => pending });
    world.track(['a'], deadline(60 * MINUTE_MS));
    await world.clock.advance(59.7 * MINUTE_MS);
    expect(world.monitor.nextPollAt(world.get('a'))).toBe(START_MS + 60 * MINUTE_MS - 2_000);
  });

  it('counts if its response arrives in the same moment as the deadline', async () => {
    const held = Promise.withResolvers<HttpResult>();
    const world = openWatcher({ respond: () => held.promise });
    world.clock.after(8_000, () => held.resolve(finalized));
    world.track(['a'], deadline(8_000));
    await world.clock.advance(8_000);
    expect(endOf(world, 'a')).toEqual(['finalized', 8_000]);
  });

  it('is repeated if its response cannot be stored', async () => {
    const held = Promise.withResolvers<HttpResult>();
    const world = openWatcher({ respond: () => held.promise });
    world.clock.after(8_000, () => held.resolve(finalized));
    world.track(['a'], deadline(8_000));
    const { ledger } = world;
    const { record } = ledger;
    const fullOnce = () => {
      Object.assign(ledger, { record });
      throw new LedgerError('full', 'the disk is full');
    };
    Object.assign(ledger, { record: fullOnce });
    await world.clock.advance(15_000);
    expect(world.get('a').status).toBe('finalized');
  });

  it('does not count if its response arrives later', async () => {
    const held = Promise.withResolvers<HttpResult>();
    const world = openWatcher({ respond: () => held.promise });
    world.track(['a'], deadline(8_000));
    await world.clock.advance(9_000);
    held.resolve(finalized);
    await world.clock.advance(MINUTE_MS);
    expect(endOf(world, 'a')).toEqual(['expired', 8_000]);
  });

  it('is repeated after an outage just before the deadline', async () => {
    let current: HttpResult = pending;
    const world = openWatcher({
      respond: () => current,
      scheduler: { breaker: { failures: 1, probeMs: 1_000, maxProbeMs: 30_000 } },
    });
    world.track(['a', 'b'], deadline(10 * MINUTE_MS));
    await world.clock.advance(10 * MINUTE_MS - 2_500);
    current = databaseDown;
    await world.clock.advance(MINUTE_MS);
    current = finalized;
    await world.clock.advance(MINUTE_MS);
    expect(['a', 'b'].map((id) => world.get(id).status)).toEqual(['finalized', 'finalized']);
  });
});

describe('time in which the upstream could not be polled moves a deadline', () => {
  it.each<[string, HttpResult]>([
    ['an outage', databaseDown],
    ['a refused key', unauthorized],
    ['a pause', throttled],
  ])('%s', async (_what, trouble) => {
    let current: HttpResult = recordNotFound;
    const world = openWatcher({ respond: () => current });
    world.track(['a', 'b', 'c'], deadline(5 * MINUTE_MS));
    world.track(['seen']);
    current = pending;
    await world.clock.advance(2 * MINUTE_MS);
    current = trouble;
    await world.clock.advance(20 * MINUTE_MS);
    expect(world.get('a').status).toBe('pending');
    current = pending;
    await world.clock.advance(2 * MINUTE_MS);
    expect(world.get('a').status).toBe('pending');
    const movedTo = world.monitor.deadlineAt(world.get('a')) - START_MS;
    expect(movedTo).toBeGreaterThan(20 * MINUTE_MS);
    await world.clock.advance(10 * MINUTE_MS);
    expect(endOf(world, 'a')).toEqual(['expired', movedTo]);
  });

  it('a step of the clock', async () => {
    const world = openWatcher({ respond: () => notFound });
    world.track(['a'], deadline(5 * MINUTE_MS));
    await world.clock.advance(MINUTE_MS);
    world.clock.skip(60 * MINUTE_MS);
    await world.clock.advance(10 * MINUTE_MS);
    expect(endOf(world, 'a')).toEqual(['expired', 65 * MINUTE_MS]);
  });
});

describe('a deadline that passed while nothing could be polled is decided by the first response', () => {
  const RESPONSES: [string, HttpResult, Status][] = [
    ['Finalized', finalized, 'finalized'],
    ['Pending', pending, 'expired'],
    ['Error', failing, 'failed'],
    ['not found', notFound, 'expired'],
  ];

  it.each(RESPONSES)('because the server did not run: %s', async (_what, later, status) => {
    let current: HttpResult = notFound;
    const world = openWatcher({ respond: () => current });
    world.track(['a', 'b'], deadline(5 * MINUTE_MS));
    await world.clock.advance(MINUTE_MS);
    current = later;
    await world.isDownFor(60 * MINUTE_MS);
    await world.clock.advance(5_000);
    expect(['a', 'b'].map((id) => world.get(id).status)).toEqual([status, status]);
  });

  it.each(RESPONSES)('because the disk was full: %s', async (_what, later, status) => {
    let current: HttpResult = notFound;
    const world = openWatcher({ respond: () => current });
    world.track(['a', 'b'], deadline(5 * MINUTE_MS));
    await world.clock.advance(MINUTE_MS);
    const { ledger } = world;
    const { record, recordPolling, expire } = ledger;
    const full = () => {
      throw new LedgerError('full', 'the disk is full');
    };
    Object.assign(ledger, { record: full, recordPolling: full, expire: full });
    await world.clock.advance(10 * MINUTE_MS);
    current = later;
    Object.assign(ledger, { record, recordPolling, expire });
    await world.clock.advance(5_000);
    expect(['a', 'b'].map((id) => world.get(id).status)).toEqual([status, status]);
  });

  it.each(RESPONSES)('because it was imported later: %s', async (_what, current, status) => {
    const world = openWatcher({ respond: () => current });
    world.track(['other']);
    await world.clock.advance(10 * MINUTE_MS);
    const { track } = world;
    track(['a'], { trackedAt: START_MS - MINUTE_MS, deadlineAt: START_MS + 5 * MINUTE_MS });
    await world.clock.advance(1_000);
    expect(world.get('a').status).toBe(status);
  });

  it('and without one for five minutes, it ends then', async () => {
    const world = openWatcher({ respond: (id) => (id === 'a' ? databaseDown : pending) });
    world.track(['a'], deadline(5 * MINUTE_MS));
    world.track(['b', 'c', 'd', 'e', 'f']);
    await world.isDownFor(60 * MINUTE_MS);
    await world.clock.advance(4 * MINUTE_MS);
    expect(world.get('a').status).toBe('tracking');
    await world.clock.advance(3 * MINUTE_MS);
    expect(world.get('a').status).toBe('expired');
  });
});

describe('a deadline that is changed', () => {
  it.each([1_000, 30_000])('to one in %i ms ends the submission then', async (ms) => {
    const world = openWatcher({ respond: () => notFound });
    world.track(['a']);
    await world.clock.advance(5 * MINUTE_MS);
    expect(world.monitor.update('a', { deadlineAt: START_MS })?.kind, 'the past').toBe('late');
    world.monitor.update('a', { deadlineAt: world.clock.now() + ms });
    await world.clock.advance(MINUTE_MS);
    expect(endOf(world, 'a')).toEqual(['expired', 5 * MINUTE_MS + ms]);
  });

  it('to a later one ends the submission at the later one, also after a restart', async () => {
    const world = openWatcher({ respond: () => pending });
    world.track(['a'], deadline(MINUTE_MS));
    world.monitor.update('a', { deadlineAt: START_MS + 3 * MINUTE_MS });
    await world.clock.advance(2 * MINUTE_MS);
    expect(world.get('a').status).toBe('pending');
    world.restart();
    await world.clock.advance(2 * MINUTE_MS);
    expect(endOf(world, 'a')).toEqual(['expired', 3 * MINUTE_MS]);
  });

  it('by tracking the submission again holds from then on', async () => {
    const world = openWatcher({ respond: () => notFound });
    world.track(['a'], deadline(8_000));
    await world.clock.advance(MINUTE_MS);
    world.track(['a'], { ...deadline(MINUTE_MS + 8_000), retrack: true });
    await world.clock.advance(MINUTE_MS);
    expect(endOf(world, 'a')).toEqual(['expired', MINUTE_MS + 8_000]);
  });
});
