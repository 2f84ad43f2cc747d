import { expect, test, vi } from 'vitest';
import type { UpstreamResponse } from '../../src/domain/classify.ts';
import { LedgerError } from '../../src/ledger/file/errors.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { SharedUpstream, type UpstreamMember } from '../../src/watch/shared-upstream.ts';
import { byAge } from '../support/virtual-time/pacing.ts';
import { createVirtualClock } from '../support/virtual-time/virtual-clock.ts';
import {
  databaseDown,
  finalized,
  MINUTE_MS,
  openWatcher,
  pending,
  response,
  START_MS,
} from '../support/virtual-time/virtual-watcher.ts';

type Options = { budget?: Partial<{ requests: number; perMs: number; concurrency: number }> };

/** An upstream that responds at once, and members that have any number of polls due. */
function openUpstream({ budget }: Options = {}) {
  const clock = createVirtualClock(START_MS);
  const shared = new SharedUpstream({
    settings: {
      budget: { requests: 10, perMs: 1_000, concurrency: 10, ...budget },
      breaker: { failures: 5, probeMs: 1_000, maxProbeMs: 30_000 },
      leaseMs: 10_000,
    },
    clock,
    random: () => 0.5,
  });
  const sent: string[] = [];
  const join = (name: string, { weight = 1, due = 0 } = {}) => {
    const state = { due, weight };
    const member: UpstreamMember = {
      weight: () => state.weight,
      scheduler: { snapshot: () => null },
      isReady: () => state.due > 0,
      take(now, most) {
        const ids: string[] = [];
        while (ids.length < most && state.due > 0 && shared.limits.available(now) > 0) {
          shared.limits.send(now);
          state.due -= 1;
          ids.push(name);
        }
        return ids;
      },
      send(ids) {
        sent.push(...ids);
        clock.after(0, () => {
          for (const _ of ids) shared.limits.budget.complete(clock.now());
          shared.wake();
        });
      },
      wakeAt: () => (state.due > 0 ? shared.limits.sendableAt(clock.now()) : Number.POSITIVE_INFINITY),
      upstreamChanged: () => undefined,
    };
    shared.join(member);
    return { state, member };
  };
  const counts = () =>
    Object.fromEntries([...Map.groupBy(sent, (name) => name)].map(([name, of]) => [name, of.length]));
  return { clock, shared, sent, join, counts };
}

test('one poll of a tenant is sent with the next request, however many of another one are due', async () => {
  const { clock, shared, sent, join } = openUpstream();
  join('large', { due: 100_000 });
  const small = join('small');
  shared.wake();
  await clock.advance(30_000);
  small.state.due = 1;
  shared.wake();
  const before = sent.length;
  await clock.advance(1_100);
  expect(sent.slice(before, before + 2)).toContain('small');
});

test('an exhausted budget is divided equally among the tenants with due polls', async () => {
  const { clock, shared, counts, join } = openUpstream();
  for (const name of ['a', 'b', 'c']) join(name, { due: 100_000 });
  shared.wake();
  await clock.advance(60_000);
  const { a = 0, b = 0, c = 0 } = counts();
  expect(a).toBeGreaterThan(150);
  expect([Math.abs(a - b), Math.abs(b - c)].every((difference) => difference <= 1)).toBe(true);
});

test('it is divided by their weights, also after they were changed', async () => {
  const { clock, shared, counts, join } = openUpstream();
  join('a', { due: 100_000, weight: 3 });
  const b = join('b', { due: 100_000 });
  shared.wake();
  await clock.advance(60_000);
  const first = counts();
  expect((first.a ?? 0) / (first.b ?? 1)).toBeCloseTo(3, 1);
  b.state.weight = 6;
  await clock.advance(60_000);
  const second = counts();
  const ratio = ((second.a ?? 0) - (first.a ?? 0)) / ((second.b ?? 0) - (first.b ?? 0));
  expect(ratio).toBeCloseTo(0.5, 1);
});

test('a share that a tenant does not use is used by the others, and not saved up', async () => {
  const { clock, shared, counts, join } = openUpstream();
  join('a', { due: 100_000 });
  const b = join('b');
  shared.wake();
  await clock.advance(60_000);
  const { a: alone = 0 } = counts();
  expect(alone).toBeGreaterThan(500);
  b.state.due = 100_000;
  shared.wake();
  await clock.advance(60_000);
  const { a = 0, b: late = 0 } = counts();
  expect(Math.abs(a - alone - late)).toBeLessThanOrEqual(10);
});

test('several tenants together send no more than the budget', async () => {
  const { clock, shared, sent, join } = openUpstream({ budget: { requests: 5, perMs: 10_000 } });
  for (const name of ['a', 'b', 'c', 'd']) join(name, { due: 1_000 });
  shared.wake();
  await clock.advance(9_000);
  expect(sent.length).toBe(5);
});

test('a tenant that leaves does not delay the others', async () => {
  const { clock, shared, counts, join } = openUpstream();
  const a = join('a', { due: 100_000 });
  join('b', { due: 100_000 });
  shared.wake();
  await clock.advance(10_000);
  shared.leave(a.member);
  const { a: before = 0, b = 0 } = counts();
  await clock.advance(10_000);
  const after = counts();
  expect(after.a).toBe(before);
  expect((after.b ?? 0) - b).toBeGreaterThan(80);
});

test('two ledgers track the same id, each with its own polls and history', async () => {
  const one = openWatcher({ respond: () => pending });
  const other = openWatcher({ respond: () => finalized }, { world: one });
  one.track(['same']);
  other.track(['same']);
  await one.clock.advance(MINUTE_MS);
  expect(one.get('same').status).toBe('pending');
  expect(other.get('same').status).toBe('finalized');
});

test('polls of two ledgers together stay within the budget', async () => {
  const scheduler = { budget: { requests: 4, perMs: 10_000, concurrency: 4 } };
  const one = openWatcher({ respond: () => pending, scheduler });
  const other = openWatcher({ respond: () => pending, scheduler }, { world: one });
  one.track(Array.from({ length: 40 }, (_, index) => `one-${index}`));
  other.track(['other']);
  await one.clock.advance(2 * MINUTE_MS);
  const times = [...one.polls, ...other.polls].map(({ at }) => at).toSorted((a, b) => a - b);
  const windows = times.map((from) => times.filter((at) => at >= from && at < from + 10_000).length);
  expect(Math.max(...windows)).toBeLessThanOrEqual(4);
  expect(other.polls[0]?.at).toBeLessThanOrEqual(START_MS + 11_000);
});

test('while a ledger is unavailable at the start, the others send nothing in the time in which its previous process may have sent', async () => {
  const scheduler = { budget: { requests: 4, perMs: 10_000, concurrency: 4 } };
  const full = vi.spyOn(Ledger.prototype, 'upstream').mockImplementation(() => {
    throw new LedgerError('full', 'the disk is full');
  });
  const one = openWatcher({ respond: () => pending, scheduler });
  full.mockRestore();
  const other = openWatcher({ respond: () => pending, scheduler }, { world: one });
  other.track(['other']);
  await one.clock.advance(9_000);
  expect(other.polls).toEqual([]);
  await one.clock.advance(2_000);
  expect(other.polls).toHaveLength(1);
});

test('an outage that the polls of one ledger find is recorded in all, moves the deadlines of all, and needs one probe at a time', async () => {
  let answer: UpstreamResponse = pending;
  const one = openWatcher({ respond: () => answer });
  const other = openWatcher({ respond: () => answer }, { world: one });
  one.track(Array.from({ length: 10 }, (_, index) => `one-${index}`));
  other.track(['other'], { deadlineAt: START_MS + 30 * MINUTE_MS });
  await one.clock.advance(MINUTE_MS);
  answer = databaseDown;
  await one.clock.advance(10 * MINUTE_MS);
  expect(other.turns.map(({ event }) => event)).toEqual(['upstream.down']);
  expect(one.turns.map(({ event }) => event)).toEqual(['upstream.down']);
  expect(other.ledger.upstream('default').state).toBe('down');
  const probes = [...one.polls, ...other.polls].filter(({ at }) => at > START_MS + 6 * MINUTE_MS);
  expect(probes.length).toBeLessThan(20);

  answer = pending;
  await one.clock.advance(MINUTE_MS);
  expect(other.turns.map(({ event }) => event)).toEqual(['upstream.down', 'upstream.up']);
  const movedMs = other.monitor.deadlineAt(other.get('other')) - other.get('other').deadlineAt;
  expect(movedMs).toBeGreaterThan(8 * MINUTE_MS);
});

test('a pause that the upstream requests from one ledger holds for all', async () => {
  let answer: UpstreamResponse = pending;
  const one = openWatcher({ respond: () => answer });
  const other = openWatcher({ respond: () => answer }, { world: one });
  one.track(['one']);
  other.track(['other']);
  await one.clock.advance(MINUTE_MS);
  answer = response(429, 'slow down', { retryAfter: '600' });
  await one.clock.advance(MINUTE_MS);
  const before = one.polls.length + other.polls.length;
  answer = pending;
  await one.clock.advance(8 * MINUTE_MS);
  expect(one.polls.length + other.polls.length).toBe(before);
  for (const { monitor, get } of [
    { monitor: one.monitor, get: () => one.get('one') },
    { monitor: other.monitor, get: () => other.get('other') },
  ])
    expect(monitor.deadlineAt(get()) - get().deadlineAt).toBeGreaterThan(7 * MINUTE_MS);
});

test('a ledger that missed the end of an outage learns it when it is opened again, and does not interrupt the others', async () => {
  let answer: UpstreamResponse = pending;
  const one = openWatcher({ respond: () => answer });
  const other = openWatcher({ respond: () => answer }, { world: one });
  one.track(Array.from({ length: 10 }, (_, index) => `one-${index}`));
  other.track(['other']);
  await one.clock.advance(MINUTE_MS);
  answer = databaseDown;
  await one.clock.advance(5 * MINUTE_MS);
  await other.monitor.stop(0);
  answer = pending;
  await other.isDownFor(5 * MINUTE_MS);
  await one.clock.advance(MINUTE_MS);
  expect(one.turns.map(({ event }) => event)).toEqual(['upstream.down', 'upstream.up']);
  expect(other.turns.map(({ event }) => event)).toEqual(['upstream.down', 'upstream.up']);
  expect(other.ledger.upstream('default').state).toBe('closed');
});

test('a new ledger begins with what another one has learned about the upstream', () => {
  const restored: string[] = [];
  const policy: typeof byAge = (deps) => ({
    ...byAge(deps),
    snapshot: () => 'learned',
    restore: (learned) => restored.push(learned),
  });
  const one = openWatcher({ respond: () => pending, policy });
  expect(restored).toEqual([]);
  openWatcher({ respond: () => pending, policy }, { world: one });
  expect(restored).toEqual(['learned']);
});

test('polls of two tenants that use all requests in flight, and never get a response, are repeated after their leases', async () => {
  const respond = () => new Promise<UpstreamResponse>(() => undefined);
  const scheduler = { budget: { requests: 100, perMs: 1_000, concurrency: 4 }, leaseMs: 30_000 };
  const one = openWatcher({ respond, scheduler });
  const other = openWatcher({ respond, scheduler }, { world: one });
  one.track(['a', 'b']);
  other.track(['c', 'd']);
  await one.clock.advance(1_000);
  expect([one.polls.length, other.polls.length]).toEqual([2, 2]);
  await one.clock.advance(5 * MINUTE_MS);
  expect(one.polls.length).toBeGreaterThan(9);
  expect(other.polls.length).toBeGreaterThan(9);
});
