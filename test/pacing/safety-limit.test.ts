import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../bench/support/random.ts';
import { type Candidate, ceilingMs, eventPacing, NEVER } from '../../src/pacing/index.ts';

const MINUTE = 60_000;

describe('the safety net', () => {
  it.each([
    [-MINUTE, MINUTE],
    [0, MINUTE],
    [MINUTE, MINUTE],
    [2 * MINUTE, 2 * MINUTE],
    [5 * MINUTE, 5 * MINUTE],
    [24 * 60 * MINUTE, 5 * MINUTE],
  ])('at an age of %i ms is %i ms', (ageMs, ms) => {
    expect(ceilingMs({ maxIntervalMs: MINUTE }, ageMs)).toBe(ms);
  });
});

it('a submission whose polls always fail is polled less and less often, but at least every 5 min', () => {
  const deps = { reschedule: () => undefined, random: seededRandom(1) };
  const policy = eventPacing({ lagPrice: 1 })(deps);
  const item: Candidate & { dueAt: number } = { trackedAt: 0, dueAt: 0, order: 0, openAt: NEVER };
  item.dueAt = policy.register(item, { polledAt: null }, 0);
  const polledAt: number[] = [];
  while (item.dueAt < 180 * MINUTE) {
    const now = item.dueAt;
    polledAt.push(now);
    item.dueAt = policy.learn(item, { kind: 'unavailable', at: now, durationMs: 50 }, now);
    expect(item.dueAt - now).toBeLessThan(5 * MINUTE + 1);
  }
  const until = (minutes: number) => polledAt.filter((at) => at < minutes * MINUTE).length;
  expect(until(60)).toBeLessThan(70);
  expect(until(180) - until(60)).toBe(24);
});
