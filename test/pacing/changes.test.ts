import { describe, expect, it } from 'vitest';
import { arrivalsOf } from '../../bench/pacing/arrivals.ts';
import { sandboxWorld } from '../../bench/pacing/sandbox-world.ts';
import { type Run, START_MS, simulate, type World } from '../../bench/pacing/simulate.ts';
import { seededRandom } from '../../bench/support/random.ts';
import {
  ceilingMs,
  learnedPacing,
  type PacingPolicy,
  type PolicyFactory,
} from '../../src/pacing/index.ts';
import type { Scheduler } from '../../src/polling/scheduler.ts';
import type { Classification } from '../../src/submissions/classify.ts';
import {
  type Finality,
  PENDING,
  periodic,
  SHAPES,
  worldOf,
} from '../support/virtual-time/finality-worlds.ts';
import {
  costOf,
  createScheduler,
  drain,
  excessOverSafetyNet,
  restarting,
  SLACK_MS,
} from '../support/virtual-time/pacing.ts';

const AMPLE = { requests: 10_000, perMs: 1_000, concurrency: 10_000 };
const LEARNED = learnedPacing({ lagPrice: 1 });
const NET = { maxIntervalMs: 60_000 };
const ERROR: Classification = { kind: 'error', state: 'Error', error: 'TIMEOUT', envelope: '' };
const newScheduler = () => createScheduler({ ...AMPLE, policy: LEARNED });

function run(world: World, perS: number, submissions: number, policy = LEARNED): Run {
  const arrivals = arrivalsOf({ kind: 'poisson', perS, submissions }, seededRandom(5));
  return simulate({ world, arrivals, budget: AMPLE, policy, seed: 5 });
}

/** Returns the mean of requests + seconds of lag over the submissions tracked in an interval. */
function cost({ submissions }: Run, fromMs: number, untilMs: number): number {
  return costOf(submissions.filter(({ trackedAt }) => trackedAt >= fromMs && trackedAt < untilMs));
}

/**
 * Polls until `untilMs` and returns the number of polls. Fails if the scheduler makes no progress.
 */
function poll(
  scheduler: Scheduler,
  fromMs: number,
  untilMs: number,
  verdict: (id: string, now: number) => Classification,
): number {
  let polls = 0;
  for (let now = fromMs, steps = 0; now < untilMs; steps++) {
    expect(steps, 'no end of events').toBeLessThan(50_000);
    for (const submissionId of drain(scheduler, now)) {
      polls++;
      const response = verdict(submissionId, now);
      scheduler.observe(
        { submissionId, at: now, durationMs: 0, ...response },
        response.kind !== 'finalized',
        now,
      );
    }
    const wakeAt = scheduler.wakeAt();
    expect(wakeAt, 'wakes in the past').toBeGreaterThanOrEqual(now);
    now = wakeAt;
  }
  return polls;
}

describe('after a change of the chain', () => {
  it('20 blocks after the finality gap becomes 1 instead of 2, the cost is that of a gap of 1', () => {
    const seed = 1;
    const changeMs = 900_000;
    const world = sandboxWorld(
      { seed, world: 'calm', finalityGap: 2 },
      { atMs: START_MS + changeMs, blocks: 1 },
    );
    const changed = run(world, 0.25, 450);
    const settled = run(sandboxWorld({ seed, world: 'calm', finalityGap: 1 }), 0.25, 450);
    const after = [changeMs + 400_000, 1_800_000] as const;
    expect(cost(changed, ...after)).toBeLessThan(1.25 * cost(settled, ...after));
  });

  it('slots that become 20 s instead of 6 s are learned', () => {
    const changeMs = START_MS + 600_000;
    const [short, long] = [periodic(6), periodic(20)];
    const both = worldOf(
      (now, random) => (now < changeMs ? short : long)(now, random),
      seededRandom(5),
    );
    const changed = run(both, 0.25, 500);
    const settled = run(worldOf(long, seededRandom(5)), 0.25, 250);
    expect(cost(changed, 1_600_000, 2_000_000)).toBeLessThan(
      1.5 * cost(settled, 600_000, 1_000_000),
    );
  });

  it('a chain that restarts its block numbers at 0 costs as much as before', () => {
    const changeMs = START_MS + 900_000;
    const chain = periodic(20);
    const world = worldOf((now, random) => {
      const { at, block } = chain(now, random);
      return {
        at,
        block: (block as number) - Math.floor((now < changeMs ? START_MS : changeMs) / 20_000),
      };
    }, seededRandom(5));
    const changed = run(world, 0.25, 500);
    expect(cost(changed, 1_200_000, 2_000_000)).toBeLessThan(
      1.25 * cost(changed, 400_000, 900_000),
    );
  });
});

describe('unusual submissions', () => {
  it('a batch that was final before it was tracked is found within seconds, with about one request each', () => {
    const world = worldOf((now) => ({ at: now - 1_000_000, block: 7 }), seededRandom(1));
    const { submissions, requests } = simulate({
      world,
      arrivals: Array.from({ length: 1_000 }, () => 1_000),
      budget: AMPLE,
      policy: LEARNED,
      seed: 1,
    });
    expect(requests).toBeLessThan(1_100);
    for (const { detectedAt } of submissions) expect(detectedAt).toBeLessThan(11_000);
  });

  it('ids that never appear are polled less and less, but at least every five minutes', () => {
    const scheduler = newScheduler();
    for (let i = 0; i < 20; i++)
      scheduler.add({ submissionId: `s${i}`, trackedAt: START_MS, seen: false }, START_MS);
    const last = new Map<string, number>();
    const polls = poll(scheduler, START_MS, START_MS + 8 * 3_600_000, (id, now) => {
      expect(now - (last.get(id) ?? START_MS)).toBeLessThanOrEqual(301_000);
      last.set(id, now);
      return { kind: 'not_found', error: 'Record not found', ambiguous: false };
    });
    expect(polls / 20).toBeLessThan(8 * 60);
    expect(last.size).toBe(20);
  });

  it('after a clock change of hours at a restart, every submission is still polled', () => {
    for (const jumpMs of [-5 * 3_600_000, 5 * 3_600_000]) {
      const scheduler = newScheduler();
      const before = START_MS + jumpMs;
      for (let i = 0; i < 10; i++)
        scheduler.resume(
          {
            submissionId: `s${i}`,
            trackedAt: before,
            seen: true,
            polledAt: before + 10_000,
            finalizedAt: null,
          },
          START_MS,
        );
      const polled = new Set<string>();
      poll(scheduler, START_MS, START_MS + 305_000, (id) => {
        polled.add(id);
        return PENDING;
      });
      expect(polled.size).toBe(10);
    }
  });

  it('submissions in Error that are sent again are found within the safety net, at no cost for the others', () => {
    const isFailing = (id: string) => Number(id.slice(1)) % 20 === 0;
    const world = (failing: boolean): World => {
      const [chain, random] = [periodic(20), seededRandom(6)];
      const rows: { failsAt: number; resentAt: number }[] = [];
      const base = worldOf((now, draw) => {
        const resentAt =
          failing && isFailing(`s${rows.length}`) ? now + 20_000 + 300_000 * random() : now;
        rows.push({ failsAt: now + 10_000, resentAt });
        return chain(resentAt, draw);
      }, seededRandom(5));
      return {
        ...base,
        respond(id, now) {
          const row = rows[Number(id.slice(1))];
          return row && now > row.failsAt && now < row.resentAt ? ERROR : base.respond(id, now);
        },
      };
    };
    const failing = run(world(true), 0.5, 500).submissions;
    for (const { submissionId, trackedAt, finalAt, detectedAt } of failing)
      if (isFailing(submissionId))
        expect(detectedAt - finalAt).toBeLessThan(ceilingMs(NET, finalAt - trackedAt) + SLACK_MS);
    expect(excessOverSafetyNet(failing)).toBeLessThan(SLACK_MS);
    const others = (submissions: Run['submissions']) =>
      costOf(submissions.filter(({ submissionId }) => !isFailing(submissionId)));
    expect(others(failing)).toBeLessThan(1.1 * others(run(world(false), 0.5, 500).submissions));
  });

  it('behind serial senders, the safety net holds during stalls, timeouts and cancellations', () => {
    const options = { seed: 2, world: 'rough', senders: 3, stallRate: 0.05 } as const;
    const arrivals = arrivalsOf(
      { kind: 'bursts', size: 50, everyS: 1_200, delayMaxS: 20, submissions: 300 },
      seededRandom(5),
    );
    let policy: PacingPolicy | undefined;
    const capturing: PolicyFactory = (deps) => {
      policy = LEARNED(deps);
      return policy;
    };
    const sandbox = sandboxWorld(options);
    let errors = 0;
    const world: World = {
      ...sandbox,
      respond(id, now) {
        const verdict = sandbox.respond(id, now);
        if (verdict.kind === 'error') errors++;
        return verdict;
      },
    };
    const { submissions } = simulate({
      world,
      arrivals,
      budget: AMPLE,
      policy: capturing,
      seed: 5,
    });
    expect(errors).toBeGreaterThan(0);
    expect(excessOverSafetyNet(submissions)).toBeLessThan(SLACK_MS);

    const scheduler = newScheduler();
    scheduler.restore(policy?.snapshot() ?? '');
    const polledAt = new Map<string, number>();
    for (let i = 0; i < 60; i++) {
      polledAt.set(`s${i}`, START_MS);
      scheduler.add({ submissionId: `s${i}`, trackedAt: START_MS, seen: false }, START_MS);
    }
    const pollUntil = (fromS: number, untilS: number) =>
      poll(scheduler, START_MS + 1_000 * fromS, START_MS + 1_000 * untilS, (id, now) => {
        const last = polledAt.get(id) as number;
        expect(now - last, id).toBeLessThan(ceilingMs(NET, now - START_MS) + SLACK_MS);
        polledAt.set(id, now);
        return Number(id.slice(1)) % 7 === 0 && now > START_MS + 100_000 ? ERROR : PENDING;
      });
    pollUntil(0, 30);
    // Removes the oldest submissions, the first of which are being sent.
    for (let i = 0; i < 20; i++) {
      scheduler.remove(`s${i}`, START_MS + 30_000);
      polledAt.delete(`s${i}`);
    }
    pollUntil(30, 3_600);
    for (const [id, at] of polledAt)
      expect(START_MS + 3_600_000 - at, id).toBeLessThan(300_000 + SLACK_MS);
  });

  it.each([
    ['in parallel', 1, 500, 0],
    ['by 8 senders', 0.06, 200, 8],
  ])(
    'without block numbers the cost is at most 25 % higher, with submissions sent %s',
    (_, perS, submissions, senders) => {
      const world = () => sandboxWorld({ seed: 3, world: 'usual', senders });
      const { respond, ...rest } = world();
      const silent: World = {
        ...rest,
        respond(id, now) {
          const verdict = respond(id, now);
          return 'blockNumber' in verdict ? { ...verdict, blockNumber: null } : verdict;
        },
      };
      const known = costOf(run(world(), perS, submissions).submissions);
      expect(costOf(run(silent, perS, submissions).submissions)).toBeLessThan(1.25 * known);
    },
  );

  it('after a whole cohort with its scout is removed, the scheduler never wakes', () => {
    const scheduler = newScheduler();
    for (let i = 0; i < 50; i++)
      scheduler.add({ submissionId: `s${i}`, trackedAt: START_MS, seen: false }, START_MS);
    poll(scheduler, START_MS, START_MS + 60_000, () => PENDING);
    for (let i = 0; i < 50; i++) scheduler.remove(`s${i}`, START_MS + 60_000);
    expect([scheduler.size, scheduler.wakeAt()]).toEqual([0, Number.POSITIVE_INFINITY]);
  });
});

/** Returns a copy in which each number is replaced by `value`. */
function withNumbers(state: unknown, value: unknown): object {
  return JSON.parse(JSON.stringify(state), (_, inner) =>
    typeof inner === 'number' ? value : inner,
  );
}

function withArrays(state: unknown, change: (array: unknown[]) => unknown[]): unknown {
  return JSON.parse(JSON.stringify(state), (_, inner) =>
    Array.isArray(inner) ? change(inner) : inner,
  );
}

describe('the learned state', () => {
  function trainedScheduler(): Scheduler {
    const scheduler = newScheduler();
    const chain = periodic(20);
    const random = seededRandom(9);
    const finalAt = new Map<string, number>();
    for (let now = START_MS, i = 0; i < 300; i++, now += 4_000) {
      finalAt.set(`s${i}`, chain(now, random).at);
      scheduler.add({ submissionId: `s${i}`, trackedAt: now, seen: false }, now);
      poll(scheduler, now, now + 3_999, (id, at) =>
        (finalAt.get(id) as number) <= at
          ? { kind: 'finalized', state: 'Finalized', error: null, envelope: '', blockNumber: null }
          : PENDING,
      );
    }
    return scheduler;
  }

  it('survives a restart, which polls each open submission at most once more', () => {
    const now = START_MS + 1_200_000;
    const old = trainedScheduler();
    const scheduler = newScheduler();
    scheduler.restore(old.snapshot() as string);
    expect(old.outlook(now).description.slot?.periodMs).toBeCloseTo(20_000, -3);
    expect(scheduler.snapshot()).toBe(old.snapshot());
    for (let i = 0; i < 30; i++) {
      const tracked = { submissionId: `r${i}`, trackedAt: now - 1_000, seen: true };
      scheduler.resume({ ...tracked, polledAt: now - 500, finalizedAt: null }, now);
      old.add(tracked, now);
    }
    const uninterrupted = poll(old, now, now + 15_000, () => PENDING);
    expect(poll(scheduler, now, now + 15_000, () => PENDING)).toBeLessThanOrEqual(
      uninterrupted + 30,
    );
  });

  it.each<[string, number, number, () => World]>([
    ['all at once', 0.06, 250, () => sandboxWorld({ seed: 3, world: 'usual' })],
    ['by 8 senders', 0.06, 250, () => sandboxWorld({ seed: 3, world: 'usual', senders: 8 })],
    ['without slots', 0.2, 300, () => worldOf(SHAPES.uniform as Finality, seededRandom(5))],
  ])('costs no more if the process restarts every ten minutes: %s', (_, perS, count, world) => {
    const late = ({ submissions }: Run) => costOf(submissions.slice(count / 3));
    const uninterrupted = late(run(world(), perS, count));
    expect(late(run(world(), perS, count, restarting(LEARNED, 600_000)))).toBeLessThan(
      1.15 * uninterrupted,
    );
  });

  /** Returns a policy restored from `text` that fails on poll times that are NaN or infinite. */
  function restored(text: string): PolicyFactory {
    return (deps) => {
      const policy = LEARNED({
        ...deps,
        reschedule(item, dueAt) {
          expect(dueAt, text.slice(0, 60)).not.toBeNaN();
          deps.reschedule(item, dueAt);
        },
      });
      policy.restore(text);
      for (const name of ['register', 'learn', 'confirm'] as const) {
        const decide = policy[name].bind(policy) as (...args: unknown[]) => number;
        policy[name] = (...args: unknown[]) => {
          const dueAt = decide(...args);
          expect(dueAt, `${name} after ${text.slice(0, 60)}`).toBeLessThan(
            Number.POSITIVE_INFINITY,
          );
          return dueAt;
        };
      }
      return policy;
    };
  }

  it('is ignored if it is invalid or of another version', () => {
    const own = JSON.parse(trainedScheduler().snapshot() as string);
    const random = seededRandom(4);
    const bytes = Array.from({ length: 10 }, () =>
      String.fromCharCode(...Array.from({ length: 40 }, () => 256 * random())),
    );
    const others = [
      { ...own, version: own.version - 1 },
      { ...own, version: own.version + 1 },
      ...[0, -1, 1e308, null, '1'].flatMap((value) => [
        { ...withNumbers(own, value), version: own.version },
        ...Object.keys(own)
          .filter((key) => key !== 'version')
          .map((key) => ({ ...own, [key]: withNumbers(own[key], value) })),
      ]),
      ...Object.keys(own).flatMap((key) => [
        { ...own, [key]: undefined },
        { ...own, [key]: withArrays(own[key], () => []) },
        { ...own, [key]: withArrays(own[key], (array) => Array(1_000).fill(array).flat()) },
      ]),
    ];
    for (const text of [
      '',
      'null',
      '[]',
      '{}',
      ...bytes,
      ...others.map((other) => JSON.stringify(other)),
    ]) {
      const scheduler = newScheduler();
      scheduler.restore(text);
      const now = START_MS + 1_200_000;
      scheduler.add({ submissionId: 'a', trackedAt: now, seen: false }, now);
      const { curve } = scheduler.outlook(now).description;
      for (const { probability } of curve)
        expect(probability, text.slice(0, 60)).toBeGreaterThanOrEqual(0);
      expect(poll(scheduler, now, now + 400_000, () => PENDING)).toBeGreaterThan(0);
      const { submissions, requests } = run(
        worldOf(periodic(20), seededRandom(5)),
        0.5,
        20,
        restored(text),
      );
      expect(excessOverSafetyNet(submissions), text.slice(0, 60)).toBeLessThan(SLACK_MS);
      expect(requests, text.slice(0, 60)).toBeLessThan(20 * submissions.length);
    }
  });
});

it('learned state whose distributions do not sum to 1 is ignored, and the probability of finding finality is at most 1', () => {
  const policyOf = (text: string) => {
    const policy = LEARNED({ reschedule: () => undefined, random: seededRandom(1) });
    policy.restore(text);
    return policy;
  };
  let policy: PacingPolicy | undefined;
  const capturing: PolicyFactory = (deps) => {
    policy = LEARNED(deps);
    return policy;
  };
  run(worldOf(periodic(20), seededRandom(5)), 0.5, 100, capturing);
  const own = JSON.parse(policy?.snapshot() ?? '');
  expect(own.slots).not.toBeNull();
  for (const factor of [1e-6, 1, 1e6]) {
    const slots = { ...own.slots, event: own.slots.event.map((p: number) => p * factor) };
    const restored = policyOf(JSON.stringify({ ...own, slots }));
    const item = {
      trackedAt: START_MS,
      dueAt: START_MS,
      order: 0,
      openAt: Number.NEGATIVE_INFINITY,
    };
    restored.register(item, { polledAt: null }, START_MS);
    for (let s = 0; s < 100; s++)
      expect(restored.gain(item, START_MS + 1_000 * s)).toBeLessThanOrEqual(1);
    expect(restored.describe(START_MS).slot !== null).toBe(factor === 1);
  }
});

it('a foreign slot time near the shortest possible is dropped, and the own snapshot is readable', () => {
  let policy: PacingPolicy | undefined;
  const restored: PolicyFactory = (deps) => {
    policy = LEARNED(deps);
    const foreign = JSON.parse(policy.snapshot() as string);
    const clock = { periodMs: 100, originMs: 0, events: [] };
    policy.restore(JSON.stringify({ ...foreign, clock }));
    return policy;
  };
  run(worldOf(periodic(20), seededRandom(5)), 0.5, 100, restored);
  const again = LEARNED({ reschedule: () => undefined, random: seededRandom(1) });
  again.restore(policy?.snapshot() as string);
  expect(again.describe(START_MS).observed).toBe(100);
  expect(again.describe(START_MS).slot?.periodMs).toBeCloseTo(20_000, -3);
});
