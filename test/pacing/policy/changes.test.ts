import { describe, expect, it } from 'vitest';
import { arrivalsOf } from '../../../bench/pacing/arrivals.ts';
import { sandboxWorld } from '../../../bench/pacing/sandbox-world.ts';
import { type Run, START_MS, simulate, type World } from '../../../bench/pacing/simulate.ts';
import { seededRandom } from '../../../bench/support/random.ts';
import type { Classification } from '../../../src/domain/classify.ts';
import { learnedPacing } from '../../../src/pacing/policy/policy.ts';
import type { Pacer } from '../../../src/pacing/scheduler.ts';
import { PENDING, periodic, worldOf } from '../../support/finality-worlds.ts';
import { createPacer, drain } from '../../support/pacing.ts';

const AMPLE = { requests: 10_000, perMs: 1_000, concurrency: 10_000 };
const LEARNED = learnedPacing({ lagPrice: 1 });
const newPacer = () => createPacer({ ...AMPLE, policy: LEARNED });

function run(world: World, perS: number, submissions: number): Run {
  const arrivals = arrivalsOf({ kind: 'poisson', perS, submissions }, seededRandom(5));
  return simulate({ world, arrivals, budget: AMPLE, policy: LEARNED, seed: 5 });
}

/** Requests and seconds of lag, in the mean of those tracked between two moments. */
function cost({ lives }: Run, fromMs: number, untilMs: number): number {
  const chosen = lives.filter(({ trackedAt }) => trackedAt >= fromMs && trackedAt < untilMs);
  return chosen.reduce((sum, l) => sum + l.askedAt.length + (l.detectedAt - l.finalAt) / 1_000, 0) / chosen.length;
}

/** Polls until the given moment; returns how many polls there were. Guards against a pacer that does not get on. */
function poll(
  pacer: Pacer,
  fromMs: number,
  untilMs: number,
  verdict: (id: string, now: number) => Classification,
): number {
  let polls = 0;
  for (let now = fromMs, steps = 0; now < untilMs; steps++) {
    expect(steps, 'no end of events').toBeLessThan(50_000);
    for (const submissionId of drain(pacer, now)) {
      polls++;
      const answer = verdict(submissionId, now);
      pacer.observe({ submissionId, at: now, durationMs: 0, ...answer }, answer.kind !== 'finalized', now);
    }
    const wakeAt = pacer.wakeAt();
    expect(wakeAt, 'it goes back').toBeGreaterThanOrEqual(now);
    now = wakeAt;
  }
  return polls;
}

describe('after a change of the chain', () => {
  it.each([1, 2])('a gap of 2 blocks that becomes 1 costs no more 20 blocks later (seed %d)', (seed) => {
    const changeMs = 1_200_000;
    const world = sandboxWorld({ seed, world: 'calm', finalityGap: 2 }, { atMs: START_MS + changeMs, blocks: 1 });
    const changed = run(world, 0.25, 600);
    const settled = run(sandboxWorld({ seed, world: 'calm', finalityGap: 1 }), 0.25, 600);
    const after = [changeMs + 400_000, 2_400_000] as const;
    expect(cost(changed, ...after)).toBeLessThan(1.25 * cost(settled, ...after));
  });

  it('slots of 6 s that become 20 s are found again', () => {
    const changeMs = START_MS + 1_800_000;
    const [short, long] = [periodic(6), periodic(20)];
    const both = worldOf((now, random) => (now < changeMs ? short : long)(now, random), seededRandom(5));
    const changed = run(both, 0.5, 1_800);
    const settled = run(worldOf(long, seededRandom(5)), 0.5, 1_800);
    expect(cost(changed, 2_800_000, 3_600_000)).toBeLessThan(1.5 * cost(settled, 2_800_000, 3_600_000));
  });

  it('a chain that starts again with block numbers from 0 costs what it did', () => {
    const changeMs = START_MS + 1_800_000;
    const chain = periodic(20);
    const world = worldOf((now, random) => {
      const { at, block } = chain(now, random);
      return { at, block: (block as number) - Math.floor((now < changeMs ? START_MS : changeMs) / 20_000) };
    }, seededRandom(5));
    const changed = run(world, 0.25, 900);
    expect(cost(changed, 2_200_000, 3_600_000)).toBeLessThan(1.25 * cost(changed, 1_000_000, 1_800_000));
  });
});

describe('what is out of the ordinary', () => {
  it('a batch that was final before it was tracked is found within seconds, with about one request each', () => {
    const world = worldOf((now) => ({ at: now - 1_000_000, block: 7 }), seededRandom(1));
    const { lives, requests } = simulate({
      world,
      arrivals: Array.from({ length: 1_000 }, () => 1_000),
      budget: AMPLE,
      policy: LEARNED,
      seed: 1,
    });
    expect(requests).toBeLessThan(1_100);
    for (const { detectedAt } of lives) expect(detectedAt).toBeLessThan(11_000);
  });

  it('ids that never appear are asked about ever less, but each at least every five minutes', () => {
    const pacer = newPacer();
    for (let i = 0; i < 20; i++) pacer.add({ submissionId: `s${i}`, trackedAt: START_MS, seen: false }, START_MS);
    const last = new Map<string, number>();
    const polls = poll(pacer, START_MS, START_MS + 8 * 3_600_000, (id, now) => {
      expect(now - (last.get(id) ?? START_MS)).toBeLessThanOrEqual(301_000);
      last.set(id, now);
      return { kind: 'not_found', error: 'Record not found', ambiguous: false };
    });
    expect(polls / 20).toBeLessThan(8 * 60);
    expect(last.size).toBe(20);
  });

  it('a clock that was hours ahead, or behind, at a restart leaves nobody alone', () => {
    for (const jumpMs of [-5 * 3_600_000, 5 * 3_600_000]) {
      const pacer = newPacer();
      const before = START_MS + jumpMs;
      for (let i = 0; i < 10; i++)
        pacer.resume(
          { submissionId: `s${i}`, trackedAt: before, seen: true, polledAt: before + 10_000, finalizedAt: null },
          START_MS,
        );
      const polled = new Set<string>();
      poll(pacer, START_MS, START_MS + 305_000, (id) => {
        polled.add(id);
        return PENDING;
      });
      expect(polled.size).toBe(10);
    }
  });

  it('an Error that is sent again and becomes final is found', () => {
    const pacer = newPacer();
    pacer.add({ submissionId: 'a', trackedAt: START_MS, seen: false }, START_MS);
    let foundAt = 0;
    poll(pacer, START_MS, START_MS + 900_000, (_, now) => {
      if (now < START_MS + 40_000) return PENDING;
      if (now < START_MS + 200_000) return { kind: 'error', state: 'Error', error: 'TIMEOUT', envelope: '' };
      foundAt ||= now;
      return PENDING;
    });
    expect(foundAt).toBeGreaterThan(0);
    expect(foundAt - START_MS).toBeLessThan(320_000);
  });

  it('a whole group that is cancelled, scouts and all, leaves nothing to wake for', () => {
    const pacer = newPacer();
    for (let i = 0; i < 50; i++) pacer.add({ submissionId: `s${i}`, trackedAt: START_MS, seen: false }, START_MS);
    poll(pacer, START_MS, START_MS + 60_000, () => PENDING);
    for (let i = 0; i < 50; i++) pacer.remove(`s${i}`, START_MS + 60_000);
    expect([pacer.size, pacer.wakeAt()]).toEqual([0, Number.POSITIVE_INFINITY]);
  });
});

describe('what is learned', () => {
  function taught(): Pacer {
    const pacer = newPacer();
    const chain = periodic(20);
    const random = seededRandom(9);
    const finalAt = new Map<string, number>();
    for (let now = START_MS, i = 0; i < 300; i++, now += 4_000) {
      finalAt.set(`s${i}`, chain(now, random).at);
      pacer.add({ submissionId: `s${i}`, trackedAt: now, seen: false }, now);
      poll(pacer, now, now + 3_999, (id, at) =>
        (finalAt.get(id) as number) <= at
          ? { kind: 'finalized', state: 'Finalized', error: null, envelope: '', blockNumber: null }
          : PENDING,
      );
    }
    return pacer;
  }

  it('survives a restart, which polls each open submission at most once more', () => {
    const now = START_MS + 1_200_000;
    const old = taught();
    const pacer = newPacer();
    pacer.recall(old.learned() as string);
    expect(old.outlook(now).description.slot?.periodMs).toBeCloseTo(20_000, -3);
    expect(pacer.learned()).toBe(old.learned());
    for (let i = 0; i < 30; i++) {
      const tracked = { submissionId: `r${i}`, trackedAt: now - 1_000, seen: true };
      pacer.resume({ ...tracked, polledAt: now - 500, finalizedAt: null }, now);
      old.add(tracked, now);
    }
    const uninterrupted = poll(old, now, now + 15_000, () => PENDING);
    expect(poll(pacer, now, now + 15_000, () => PENDING)).toBeLessThanOrEqual(uninterrupted + 30);
  });

  it('is learned anew from whatever is not its own', () => {
    const own = JSON.parse(taught().learned() as string);
    const random = seededRandom(4);
    const bytes = Array.from({ length: 50 }, () =>
      String.fromCharCode(...Array.from({ length: 40 }, () => 256 * random())),
    );
    const others = [
      { ...own, version: 1 },
      { ...own, ages: { ...own.ages, weights: Array(100_000).fill(1) } },
      { ...own, ages: { ...own.ages, weights: own.ages.weights.map(() => 0) } },
      { ...own, clock: { periodMs: 0, originMs: 0 } },
      { ...own, slots: { ...own.slots, event: own.slots.event.map(() => 0) } },
      { ...own, slots: { ...own.slots, delay: own.slots.delay.map(() => 0) } },
    ];
    for (const text of ['', 'null', '[]', '{}', ...bytes, ...others.map((other) => JSON.stringify(other))]) {
      const pacer = newPacer();
      pacer.recall(text);
      const now = START_MS + 1_200_000;
      pacer.add({ submissionId: 'a', trackedAt: now, seen: false }, now);
      const { curve } = pacer.outlook(now).description;
      for (const { probability } of curve) expect(probability, text.slice(0, 60)).toBeGreaterThanOrEqual(0);
      expect(poll(pacer, now, now + 400_000, () => PENDING)).toBeGreaterThan(0);
    }
  });
});
