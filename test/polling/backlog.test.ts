import { describe, expect, it } from 'vitest';
import { LEARNS_NOTHING } from '../../bench/pacing/rules.ts';
import type { Candidate, PacingPolicy } from '../../src/pacing/index.ts';
import type { Scheduler } from '../../src/polling/scheduler.ts';
import { observation } from '../support/ledger/domain.ts';
import { createScheduler, paced } from '../support/virtual-time/pacing.ts';

const LIMIT_MS = 60_000;

type World = {
  gainOf: (item: Candidate, now: number) => number;
  confirm?: PacingPolicy['confirm'];
};

/** A budget of one request a second, and a policy by which every submission is due at once. */
function tightScheduler({ gainOf, confirm = (_item, now) => now }: World): Scheduler {
  const policy: PacingPolicy = {
    ...LEARNS_NOTHING,
    register: (item) => item.trackedAt,
    learn: (_item, _observation, now) => now,
    confirm,
    gain: gainOf,
    isOverdue: (item, now) => now - Math.max(item.trackedAt, item.openAt) >= LIMIT_MS,
  };
  return createScheduler({ requests: 1, perMs: 1_000, concurrency: 1, policy: () => policy });
}

/** Polls as fast as the budget allows; each result arrives at once and is open. */
function poll(
  scheduler: Scheduler,
  { from, requests, watched = true }: { from: number; requests: number; watched?: boolean },
): string[] {
  const polled: string[] = [];
  for (let now = from; polled.length < requests; now = Math.max(now, scheduler.wakeAt())) {
    const [id] = scheduler.next(now);
    if (id === undefined) continue;
    polled.push(id);
    scheduler.observe(observation('pending', now, id), watched, now);
  }
  return polled;
}

const gainByTracking = (gains: readonly number[]) => (item: Candidate) =>
  gains[item.trackedAt] ?? 0;

describe('when more polls are due than the budget allows', () => {
  it('the polls with the highest gain are sent first, and of equal ones the longest due', () => {
    const gains = [0.1, 0.9, 0.5, 0.9, 0.2];
    const scheduler = tightScheduler({ gainOf: gainByTracking(gains) });
    for (const index of gains.keys()) scheduler.add(paced(`s${index}`, { dueAt: index }), index);
    expect(poll(scheduler, { from: 10, requests: 5, watched: false })).toEqual([
      's1',
      's3',
      's2',
      's4',
      's0',
    ]);
  });

  it('the current gain counts, even if it changed while the poll waited', () => {
    let turned = false;
    const scheduler = tightScheduler({
      gainOf: (item) => ((item.trackedAt === 0) === turned ? 0.9 : 0.1),
    });
    scheduler.add(paced('a', { dueAt: 0 }), 0);
    scheduler.add(paced('b', { dueAt: 1 }), 1);
    scheduler.add(paced('c', { dueAt: 2 }), 2);
    expect(poll(scheduler, { from: 10, requests: 1, watched: false })).toEqual(['b']);
    turned = true;
    expect(poll(scheduler, { from: 2_000, requests: 2, watched: false })).toEqual(['a', 'c']);
  });

  it('every second request goes to a submission whose safety limit has passed, the longest due first', () => {
    const scheduler = tightScheduler({ gainOf: (item) => (item.trackedAt < 10 ? 0.01 : 0.9) });
    for (const index of [0, 1, 2]) scheduler.add(paced(`old${index}`, { dueAt: index }), index);
    const from = LIMIT_MS + 100;
    for (const index of [0, 1, 2, 3, 4])
      scheduler.add(paced(`new${index}`, { dueAt: from - 50 + index }), from);
    expect(poll(scheduler, { from, requests: 8, watched: false })).toEqual([
      ...['old0', 'new0', 'old1', 'new1', 'old2', 'new2', 'new3', 'new4'],
    ]);
  });
});
