import { describe, expect, it } from 'vitest';
import { arrivalsOf } from '../../bench/pacing/arrivals.ts';
import { BASELINES } from '../../bench/pacing/baselines.ts';
import { sandboxWorld } from '../../bench/pacing/sandbox-world.ts';
import { type Life, type Run, START_MS, simulate, type World } from '../../bench/pacing/simulate.ts';
import { summarize } from '../../bench/pacing/summary.ts';
import { seededRandom } from '../../bench/support/random.ts';
import { cohortPacing } from '../../src/monitor/cohort-policy.ts';
import { readLearned } from '../../src/monitor/learned.ts';
import type { PacingPolicy, PolicyFactory } from '../../src/monitor/policy.ts';
import { learnedBy } from '../support/learned.ts';
import { type Nature, randomWorld } from '../support/random-world.ts';

const settings = { minIntervalMs: 1_000, maxIntervalMs: 60_000 };
const AMPLE = { requests: 10_000, perMs: 1_000, concurrency: 10_000 };

function run(world: World, options: { perS: number; submissions: number; policy?: PolicyFactory }): Run {
  const { perS, submissions, policy = cohortPacing(settings) } = options;
  const arrivals = arrivalsOf({ kind: 'poisson', perS, submissions }, seededRandom(1));
  return simulate({ world, arrivals, budget: AMPLE, policy, seed: 1 });
}

/** A policy with what another one has learned, and the last one made: to look into it. */
function watched(learned?: string): { factory: PolicyFactory; last: () => PacingPolicy } {
  let policy: PacingPolicy | undefined;
  return {
    factory: (deps) => {
      policy = cohortPacing(settings)(deps);
      if (learned) policy.recall(learned);
      return policy;
    },
    last: () => {
      if (!policy) throw new Error('no policy was made');
      return policy;
    },
  };
}

function partOf(all: Run, from: (life: Life) => boolean): Run {
  const lives = all.lives.filter(from);
  return { ...all, lives, requests: lives.reduce((sum, { askedAt }) => sum + askedAt.length, 0) };
}

describe('submissions that become final in groups', () => {
  it('are asked about hardly more than once each, and known at once', () => {
    const { requests, meanS, p99S } = summarize(run(sandboxWorld({}), { perS: 2, submissions: 3_000 }));
    expect(requests).toBeLessThan(1.7);
    expect(meanS).toBeLessThan(1.5);
    expect(p99S).toBeLessThan(10);
  });

  it('need no group to be known in time: the clock is enough', () => {
    const { requests, meanS } = summarize(run(sandboxWorld({}), { perS: 0.02, submissions: 500 }));
    expect(requests).toBeLessThan(2.5);
    expect(meanS).toBeLessThan(1.5);
  });

  it('hide no stragglers, and no Errors that recover', () => {
    const world = sandboxWorld({ stragglerRate: 0.2, errorRate: 0.1, timeoutRate: 0.1 });
    const { requests, meanS, p99S } = summarize(run(world, { perS: 2, submissions: 3_000 }));
    expect(requests).toBeLessThan(3.5);
    expect(meanS).toBeLessThan(1.5);
    expect(p99S).toBeLessThan(25);
  });

  it('the same seed gives the same questions', () => {
    const asked = () => run(sandboxWorld({}), { perS: 1, submissions: 300 }).lives.map(({ askedAt }) => askedAt);
    expect(asked()).toEqual(asked());
  });
});

describe('block numbers that are not where the chain must be', () => {
  /** The same world, with other block numbers. */
  const renumbered = (number: (block: number, nth: number, now: number) => number): World => {
    const world = sandboxWorld({});
    let nth = 0;
    return {
      ...world,
      answer(submissionId, now) {
        const verdict = world.answer(submissionId, now);
        if (verdict.kind !== 'finalized' || verdict.blockNumber === null) return verdict;
        return { ...verdict, blockNumber: number(verdict.blockNumber, ++nth, now - START_MS) };
      },
    };
  };

  it.each<[string, (block: number, nth: number, now: number) => number]>([
    ['one that is 300 ahead', (block, nth) => (nth === 150 ? block + 300 : block)],
    ['one beyond all numbers', (block, nth) => (nth === 150 ? 2 ** 50 : block)],
    ['one that is no whole number', (block, nth) => (nth === 150 ? block + 0.5 : block)],
    ['one in a hundred that is 50 ahead', (block, nth) => (nth % 100 === 99 ? block + 50 : block)],
    ['one in fifty that is zero', (block, nth) => (nth % 50 === 49 ? 0 : block)],
    ['one in ten beyond all numbers', (block, nth) => (nth % 10 === 3 ? 2 ** 50 : block)],
    ['a chain that begins anew, far lower', (block, _nth, now) => (now > 600_000 ? block - 80_000_000 : block)],
    ['a chain that begins anew, far higher', (block, _nth, now) => (now > 600_000 ? block + 800_000_000 : block)],
  ])('%s: nothing is known later because of it', (_name, number) => {
    const all = run(renumbered(number), { perS: 0.5, submissions: 1_500 });
    const { requests, meanS } = summarize(partOf(all, ({ trackedAt }) => trackedAt > 1_200_000));
    expect(requests).toBeLessThan(1.8);
    expect(meanS).toBeLessThan(1);
  });

  it('even where there is hardly any traffic, and so one of them is often asked between two blocks', () => {
    const odd = renumbered((block, nth) => (nth % 10 === 3 ? 2 ** 50 : block));
    expect(summarize(run(odd, { perS: 0.02, submissions: 1_500 })).requests).toBeLessThan(1.8);
  });

  it('what was learned of another chain, with higher numbers, is left behind within minutes', () => {
    const { factory, last } = watched();
    run(sandboxWorld({}), { perS: 2, submissions: 600, policy: factory });
    const { factory: restarted } = watched(last().learned() ?? undefined);
    const lower = renumbered((block) => block - 80_000_000);
    const all = run(lower, { perS: 0.5, submissions: 900, policy: restarted });
    const { requests, meanS } = summarize(partOf(all, ({ trackedAt }) => trackedAt > 600_000));
    expect(requests).toBeLessThan(1.8);
    expect(meanS).toBeLessThan(1);
  });
});

it('one that the upstream will not speak about is not asked whenever others are answered', () => {
  const world = randomWorld({ lifeMs: () => 40_000, blocks: 'none' }, seededRandom(1));
  const { factory } = watched(learnedBy(0).replace(/"ticks":\[.*?\]\]/, '"ticks":[]'));
  let asked = 0;
  const refusing: World = {
    ...world,
    answer(submissionId, now) {
      if (submissionId !== 's100') return world.answer(submissionId, now);
      asked++;
      return { kind: 'unavailable', reason: 'refused', error: 'HTTP 400', retryAfterMs: null };
    },
  };
  const arrivals = arrivalsOf({ kind: 'poisson', perS: 2, submissions: 2_000 }, seededRandom(1));
  simulate({ world: refusing, arrivals, budget: AMPLE, policy: factory, seed: 1, endMs: 1_000_000 });
  expect(asked).toBeLessThan(600);
});

describe('what is learned', () => {
  it.each<[string, object]>([
    ['distances beyond all numbers', { groups: { meanSize: 5, youngestMs: [], distances: Array(8).fill(1e306) } }],
    ['groups without end', { groups: { meanSize: 1e300, youngestMs: [], distances: [] } }],
    ['times beyond all times', { ticks: [[1, 0, 1e300]] }],
    ['blocks that are none', { ticks: [[-5, 0, 1]] }],
  ])('is not gone on with where it can not have been written by us: %s', (_name, wrong) => {
    const sound = { version: 1, ticks: [], groups: { meanSize: 0, youngestMs: [], distances: [] }, disorder: 0 };
    expect(readLearned(JSON.stringify(sound))).toBeDefined();
    expect(readLearned(JSON.stringify({ ...sound, ...wrong }))).toBeUndefined();
  });

  const learn = () => {
    const { factory, last } = watched();
    run(sandboxWorld({}), { perS: 2, submissions: 1_000, policy: factory });
    return last();
  };

  it('explains itself', () => {
    const description = learn().describe(START_MS + 560_000);
    expect(description).toMatchObject({ mode: 'cohorts', inLine: 0 });
    expect(description.periodMs).toBeCloseTo(20_000, -2);
    expect(description.leastAgeMs).toBeGreaterThan(38_000);
    expect(description.leastAgeMs).toBeLessThan(45_000);
    expect(description.groupSize).toBeGreaterThan(20);
  });

  it('survives a restart: nothing is asked before its time', () => {
    const known = watched(learn().learned() ?? '');
    const again = run(sandboxWorld({}), { perS: 2, submissions: 200, policy: known.factory });
    const anew = run(sandboxWorld({}), { perS: 2, submissions: 200 });
    expect(again.requests).toBeLessThan(anew.requests / 3);
    expect(summarize(again).meanS).toBeLessThan(1.5);
  });

  it.each(['', 'null', '{"version":2}', '{"version":1,"ticks":[[1,2]]}', '[]'])('is begun anew after %j', (text) => {
    const { factory, last } = watched(text);
    run(sandboxWorld({}), { perS: 2, submissions: 10, policy: factory });
    expect(last().describe(START_MS).mode).toBe('by_age');
  });

  /** Blocks of 20 s, final after 40 s; later of 6 s, final after 18 s, or the other way round. */
  function changing(
    early: { blockMs: number; ms: number },
    late: { blockMs: number; ms: number },
    atMs: number,
  ): World {
    const changeAt = START_MS + atMs;
    const finalAt = new Map<string, { at: number; block: number }>();
    return {
      submit(now) {
        const id = `s${finalAt.size}`;
        const { blockMs, ms } = now < changeAt ? early : late;
        const own = Math.floor(now / blockMs) + 1;
        const lateBlock = Math.floor(changeAt / early.blockMs) + 10 + own - Math.floor(changeAt / blockMs);
        finalAt.set(id, { at: own * blockMs + ms, block: now < changeAt ? own : lateBlock });
        return id;
      },
      answer(id, now) {
        const { at, block } = finalAt.get(id) ?? { at: Number.POSITIVE_INFINITY, block: 0 };
        if (at > now) return { kind: 'pending', state: 'Pending', error: null, answer: '', blockNumber: null };
        return { kind: 'finalized', state: 'Finalized', error: null, answer: '', blockNumber: block };
      },
      finalizedAt: (id) => finalAt.get(id)?.at,
    };
  }

  const slow = { blockMs: 20_000, ms: 40_000 };
  const fast = { blockMs: 6_000, ms: 18_000 };
  it.each([
    ['faster', slow, fast],
    ['slower', fast, slow],
    ['the same clock, but later', slow, { ...slow, ms: 100_000 }],
    ['the same clock, but earlier', { ...slow, ms: 100_000 }, slow],
  ])('adapts within five minutes when the upstream changes: %s', (_name, early, late) => {
    const all = run(changing(early, late, 900_000), { perS: 1, submissions: 3_000 });
    const settled = summarize(partOf(all, ({ trackedAt }) => trackedAt > 900_000 + 300_000));
    expect(settled.meanS).toBeLessThan(1.5);
    expect(settled.requests).toBeLessThan(3);
  });
});

describe('an upstream without cohorts', () => {
  const minutes = (mean: number) => (random: () => number) => -60_000 * mean * Math.log(1 - random());
  const between = (fromS: number, toS: number) => (random: () => number) => 1_000 * (fromS + (toS - fromS) * random());
  const always = (s: number) => () => 1_000 * s;
  const dense: [string, Nature][] = [
    ['no block is named', { lifeMs: minutes(1), blocks: 'none' }],
    ['each has a block of its own', { lifeMs: minutes(1), blocks: 'own' }],
    ['the blocks are nonsense', { lifeMs: minutes(1), blocks: 'odd' }],
    ['nobody is final before 20 s', { lifeMs: between(20, 120), blocks: 'none' }],
    ['the clock is real, but who is final when is not', { lifeMs: minutes(1), blocks: 'clock', clockMs: 20_000 }],
  ];
  // Hardly any traffic: whoever is asked at blocks only is always found at one, whenever it became final.
  const sparse: [string, Nature][] = [
    ['3 s each, no block is named', { lifeMs: always(3), blocks: 'none' }],
    ['40 s each, no block is named', { lifeMs: always(40), blocks: 'none' }],
    ['3 s each, and blocks that look like a clock', { lifeMs: always(3), blocks: 'clock' }],
    ['15 s each, and blocks that look like a clock', { lifeMs: always(15), blocks: 'clock' }],
    ['40 s each, and blocks that look like a clock', { lifeMs: always(40), blocks: 'clock' }],
    ['20 s to 60 s, and blocks that look like a clock', { lifeMs: between(20, 60), blocks: 'clock' }],
    ['about a minute each, and blocks that look like a clock', { lifeMs: minutes(1), blocks: 'clock' }],
  ];
  const all = [...dense.map((one) => [...one, 1] as const), ...sparse.map((one) => [...one, 0.02] as const)];
  it.each(all)('costs no more, and is known no later, than with the exponential rule: %s', (_name, nature, perS) => {
    const exponential = BASELINES.exponential;
    if (!exponential) throw new Error('no exponential rule');
    const go = (policy: PolicyFactory) =>
      summarize(run(randomWorld(nature, seededRandom(3)), { perS, submissions: 2_000, policy }));
    const [theirs, ours] = [go(exponential), go(cohortPacing(settings))];
    // What chance adds: both ask at other moments.
    expect(ours.requests).toBeLessThan(1.03 * theirs.requests);
    expect(ours.meanS).toBeLessThan(1.05 * theirs.meanS);
  });

  it.each([3, 4, 5, 6])('is found out where its blocks look like a clock, whatever chance does: seed %i', (seed) => {
    const exponential = BASELINES.exponential;
    if (!exponential) throw new Error('no exponential rule');
    const nature: Nature = { lifeMs: minutes(1 / 12), blocks: 'clock' };
    const go = (policy: PolicyFactory) => {
      const whole = run(randomWorld(nature, seededRandom(seed)), { perS: 0.02, submissions: 1_500, policy });
      return summarize(partOf(whole, ({ trackedAt }) => trackedAt > 40_000_000));
    };
    const [theirs, ours] = [go(exponential), go(cohortPacing(settings))];
    expect(ours.requests).toBeLessThan(1.1 * theirs.requests);
    expect(ours.meanS).toBeLessThan(1.5 * theirs.meanS);
  });

  it('which takes the same time for each is known at once, by two questions', () => {
    const world = randomWorld({ lifeMs: always(40), blocks: 'none' }, seededRandom(3));
    const { requests, meanS } = summarize(run(world, { perS: 0.02, submissions: 2_000 }));
    expect(requests).toBeLessThan(2.2);
    expect(meanS).toBeLessThan(1);
  });
});
