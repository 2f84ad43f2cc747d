import { expect, it } from 'vitest';
import { eventPacing, NEVER } from '../../src/pacing/index.ts';

const CHAIN = eventPacing({ lagPrice: 1 });

it('operators see the heads and the slot time', () => {
  const policy = CHAIN({ reschedule: () => {}, random: () => 0.5 });
  const now = 10 * 20_000;
  for (let number = 1; number <= 10; number++)
    policy.observeHead({ number, at: number * 20_000 }, number * 20_000);
  const item = { trackedAt: now + 5_000, dueAt: now + 5_000, order: 0, openAt: NEVER };
  policy.register(item, { polledAt: null }, now + 5_000);
  const { mode, slot, curve } = policy.describe(now + 5_000);
  expect([mode, slot?.periodMs]).toEqual(['heads', 20_000]);
  expect(slot?.nextEventAt).toBeGreaterThan(now + 19_000);
  expect(slot?.nextEventAt).toBeLessThan(now + 21_000);
  expect(slot?.emptyShare).toBeLessThan(0.04);
  expect(curve.length).toBeGreaterThan(50);
  const probabilities = curve.map(({ probability }) => probability);
  expect(probabilities).toEqual([...probabilities].sort((a, b) => a - b));
  expect(policy.describe(now + 3 * 20_000 + 1).mode).toBe('slots');
});

it('after the clock was set back, the share of empty slots is still a probability', () => {
  const policy = CHAIN({ reschedule: () => {}, random: () => 0.5 });
  const announce = (number: number, at: number) => policy.observeHead({ number, at }, at);
  for (let number = 1; number <= 6; number++) announce(number, number * 20_000);
  announce(7, 5 * 20_000 - 5_000);
  for (let number = 8; number <= 10; number++) announce(number, (number - 3) * 20_000);
  const { slot } = policy.describe(7 * 20_000 + 5_000);
  expect(slot?.emptyShare).toBeGreaterThan(0);
  expect(slot?.emptyShare).toBeLessThan(1);
});
