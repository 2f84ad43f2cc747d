import { expect, it } from 'vitest';
import { seededRandom } from '../../bench/support/random.ts';
import { SlotClock } from '../../src/pacing/slot-clock.ts';

const START_MS = 1_760_000_000_000;

it.each([6_000, 12_300, 20_000, 33_000])(
  'the slot clock finds a period of %d ms from events with empty slots',
  (periodMs) => {
    const random = seededRandom(1);
    const clock = new SlotClock();
    for (let slot = 0; slot < 200; slot++) {
      if (random() < 0.3) continue;
      const at = START_MS + slot * periodMs + 0.05 * periodMs * random();
      clock.learn({ after: at - 500, by: at + 500 }, 1.5 * periodMs);
    }
    expect(clock.state?.periodMs).toBeCloseTo(periodMs, -2);
  },
);

it('the slot clock adopts a usual slot time after a few narrow events, and none from as many that are not periodic', () => {
  const random = seededRandom(5);
  const clock = new SlotClock();
  let periodic = 0;
  while (!clock.state) {
    const at = START_MS + periodic++ * 20_000 + 1_000 * random();
    clock.learn({ after: at - 1_000, by: at }, 30_000);
  }
  expect(clock.state.periodMs).toBe(20_000);
  expect(periodic).toBeLessThan(6);

  const none = new SlotClock();
  for (let event = 0; event < 40; event++) {
    const at = START_MS + event * 20_000 + 20_000 * random();
    none.learn({ after: at - 1_000, by: at }, 30_000);
  }
  expect(none.state).toBeNull();
});

it('the slot clock finds no period that is longer than finality times allow', () => {
  const clock = new SlotClock();
  for (let slot = 0; slot < 50; slot++)
    clock.learn({ after: START_MS + slot * 20_000, by: START_MS + slot * 20_000 + 100 }, 1_000);
  expect(clock.state?.periodMs ?? 0).toBeLessThanOrEqual(4_000);
});

it('the slot clock keeps its period over many events of a short time', () => {
  const random = seededRandom(2);
  const clock = new SlotClock();
  for (let slot = 0; slot < 100; slot++) {
    const at = START_MS + (slot + 0.05 * random()) * 12_000;
    clock.learn({ after: at - 500, by: at + 500 }, 18_000);
  }
  expect(clock.state?.periodMs).toBeCloseTo(12_000, -2);
  const burstAt = START_MS + 150 * 12_000;
  for (let i = 0; i < 300; i++) {
    clock.learn({ after: burstAt + 20 * i - 900, by: burstAt + 20 * i }, 18_000);
    // Forgetting the period is harmless: the age is used until the next events show it again.
    if (clock.state) expect(clock.state.periodMs).toBeCloseTo(12_000, -2);
  }
});

it('the slot clock does not take finality in every second slot for a longer slot if senders are serial', () => {
  const random = seededRandom(3);
  const clock = new SlotClock();
  for (let event = 0; event < 60; event++) {
    const at = START_MS + 40_000 * event + 1_000 * random();
    clock.learn({ after: at - 500, by: at }, 40_000, true);
  }
  expect(clock.state?.periodMs).toBe(20_000);
});

it('the slot clock keeps its period while the intervals of all events are longer than a slot', () => {
  const random = seededRandom(4);
  const clock = new SlotClock();
  const eventAt = (slot: number) => START_MS + (slot + 0.1 * random()) * 20_000;
  for (let slot = 0; slot < 64; slot++) {
    const at = eventAt(slot);
    clock.learn({ after: at - 1_000, by: at }, 30_000);
  }
  // The first poll of each submission finds it final, 20 to 40 s after it was tracked.
  for (let slot = 64; slot < 264; slot++) {
    const by = eventAt(slot);
    clock.learn({ after: by - 20_000 * (1 + random()), by }, 30_000);
    expect(clock.state?.periodMs).toBe(20_000);
  }
});

it('the slot clock keeps its period although the narrow intervals fit a fraction of it better', () => {
  const random = seededRandom(5);
  const clock = new SlotClock();
  for (let slot = 0; slot < 128; slot++) {
    const by = START_MS + 20_000 * slot + 100 * random();
    clock.learn(
      { after: by - (slot < 64 || slot % 3 === 0 ? 200 : 6_000 + 6_000 * random()), by },
      30_000,
    );
    if (clock.state) expect(clock.state.periodMs).toBe(20_000);
  }
  expect(clock.state).not.toBeNull();
});
