import { describe, expect, it } from 'vitest';
import { arrivalsOf } from '../../bench/pacing/arrivals.ts';
import { type Run, START_MS, simulate, type World } from '../../bench/pacing/simulate.ts';
import { seededRandom } from '../../bench/support/random.ts';
import { eventPacing, type PolicyFactory } from '../../src/pacing/index.ts';
import type { Scheduler } from '../../src/polling/scheduler.ts';
import type { Classification } from '../../src/submissions/classify.ts';
import { FINALIZED, PENDING, periodic, worldOf } from '../support/virtual-time/finality-worlds.ts';
import {
  createScheduler,
  drain,
  excessOverSafetyNet,
  SLACK_MS,
} from '../support/virtual-time/pacing.ts';

const AMPLE = { requests: 10_000, perMs: 1_000, concurrency: 10_000 };
const LEARNED = eventPacing({ lagPrice: 1 });
const newScheduler = () => createScheduler({ ...AMPLE, policy: LEARNED });

function run(world: World, perS: number, submissions: number, policy = LEARNED): Run {
  const arrivals = arrivalsOf({ kind: 'poisson', perS, submissions }, seededRandom(5));
  return simulate({ world, arrivals, budget: AMPLE, policy, seed: 5 });
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
    if (steps === 50_000) expect.fail('no end of events');
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
    if (wakeAt < now) expect.fail('wakes in the past');
    now = wakeAt;
  }
  return polls;
}

describe('unusual submissions', () => {
  it('a batch that was final before it was tracked is found within 20 s, with about one request each', () => {
    const world = worldOf((now) => ({ at: now - 1_000_000, block: 7 }), seededRandom(1));
    const { submissions, requests } = simulate({
      world,
      arrivals: Array.from({ length: 60 }, () => 1_000),
      budget: AMPLE,
      policy: LEARNED,
      seed: 1,
    });
    expect(requests).toBeLessThan(70);
    for (const { detectedAt } of submissions) expect(detectedAt).toBeLessThan(20_000);
  });

  it('six of 90 submissions whose polls hang delay the first polls of the others by seconds at most', () => {
    const scheduler = newScheduler();
    const finality = periodic(20);
    const random = seededRandom(3);
    const rows = new Map<string, { at: number; block: number | null }>();
    const firstPolls = new Map<string, number>();
    const responses: { at: number; id: string }[] = [];
    for (let now = 0; now < 240_000; now += 50) {
      if (now % 1_000 === 0 && rows.size < 90) {
        const id = `s${rows.size}`;
        rows.set(id, finality(now, random));
        scheduler.add({ submissionId: id, trackedAt: now, seen: false }, now);
      }
      for (const id of drain(scheduler, now)) {
        if (!firstPolls.has(id)) firstPolls.set(id, now);
        if (Number(id.slice(1)) % 15 !== 7) responses.push({ at: now + 50, id });
      }
      while (responses[0] && responses[0].at <= now) {
        const { id } = responses.shift() as { id: string };
        const row = rows.get(id) as { at: number; block: number | null };
        const verdict = row.at <= now ? { ...FINALIZED, blockNumber: row.block } : PENDING;
        scheduler.observe(
          { submissionId: id, at: now, durationMs: 50, ...verdict },
          verdict.kind !== 'finalized',
          now,
        );
      }
    }
    const waits = [...firstPolls].map(([id, at]) => at - (rows.get(id)?.at ?? 0));
    expect(firstPolls.size).toBe(90);
    expect(Math.max(...waits)).toBeLessThan(15_000);
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
    const rows = new Map<string, ReturnType<typeof chain>>();
    for (let now = START_MS, i = 0; i < 100; i++, now += 4_000) {
      rows.set(`s${i}`, chain(now, random));
      scheduler.add({ submissionId: `s${i}`, trackedAt: now, seen: false }, now);
      poll(scheduler, now, now + 3_999, (id, at) =>
        (rows.get(id)?.at ?? 0) <= at
          ? { ...FINALIZED, blockNumber: rows.get(id)?.block ?? null }
          : PENDING,
      );
    }
    return scheduler;
  }

  it('survives a restart, which polls each open submission at most once more', () => {
    const now = START_MS + 400_000;
    const old = trainedScheduler();
    const scheduler = newScheduler();
    scheduler.restore(old.snapshot() as string);
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

  /** Returns a policy restored from `text` that fails on poll times that are NaN or infinite. */
  function restored(text: string): PolicyFactory {
    return (deps) => {
      const policy = LEARNED({
        ...deps,
        reschedule(item, dueAt) {
          if (Number.isNaN(dueAt)) expect.fail(text.slice(0, 60));
          deps.reschedule(item, dueAt);
        },
      });
      policy.restore(text);
      for (const name of ['register', 'learn', 'confirm'] as const) {
        const decide = policy[name].bind(policy) as (...args: unknown[]) => number;
        policy[name] = (...args: unknown[]) => {
          const dueAt = decide(...args);
          if (!(dueAt < Infinity)) expect.fail(`${name} after ${text.slice(0, 60)}`);
          return dueAt;
        };
      }
      return policy;
    };
  }

  it('is ignored if it is invalid or of another version; an improbable one breaks no promise', () => {
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
      if (scheduler.snapshot() === newScheduler().snapshot()) continue;
      // A state that could have been learned, of another chain.
      const now = START_MS + 400_000;
      scheduler.add({ submissionId: 'a', trackedAt: now, seen: false }, now);
      const { curve } = scheduler.outlook(now).description;
      expect(
        curve.every(({ probability }) => probability >= 0),
        text.slice(0, 60),
      ).toBe(true);
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
