import { expect, it } from 'vitest';
import type { UpstreamResponse } from '../../src/domain/classify.ts';
import { learnedPacing } from '../../src/pacing/policy/policy.ts';
import type { PolicyFactory } from '../../src/pacing/policy.ts';
import type { Finality } from '../../src/watch/finality.ts';
import { byAge } from '../support/pacing.ts';
import { openWatcher, pending, response, START_MS, unauthorized } from '../support/virtual-watcher.ts';

const answerOf = (block: number) =>
  response(200, { state: 'Finalized', error: null, data: { block_hash: '0xabc', block_number: block } });

/** An upstream where everything becomes final 40 s after the start and every 20 s from then on. */
function world({
  answerInstead,
  policy = byAge,
}: {
  answerInstead?: () => UpstreamResponse | undefined;
  policy?: PolicyFactory;
} = {}) {
  const told: Finality[] = [];
  const now = () => monitor.clock.now();
  const bornAt = new Map<string, number>();
  const monitor = openWatcher({
    answer(id) {
      const other = answerInstead?.();
      if (other) return other;
      const block = Math.ceil(((bornAt.get(id) ?? START_MS) + 25_000 - START_MS) / 20_000);
      return now() >= START_MS + block * 20_000 ? answerOf(block) : pending;
    },
    policy,
    listener: { finalized: (finality) => told.push(finality) },
  });
  return {
    monitor,
    told,
    track(id: string) {
      bornAt.set(id, now());
      monitor.track([id]);
    },
  };
}

it('is reported once, with the time it was last found open, its polls and its duration', async () => {
  const { monitor, told, track } = world();
  track('a');
  await monitor.clock.advance(60_000);
  expect(told).toHaveLength(1);
  const [{ at = 0, after = 0, trackedAt, polls, upstream } = {}] = told;
  const asked = monitor.asked.map((one) => one.at);
  expect({ trackedAt, polls, upstream }).toEqual({ trackedAt: START_MS, polls: asked.length, upstream: 'default' });
  expect(at).toBe(asked.at(-1));
  expect(after).toBe(asked.at(-2));
  expect(after).toBeLessThan(START_MS + 40_000);
  expect(at).toBeGreaterThanOrEqual(START_MS + 40_000);
});

it('is never bounded too late, whenever the learned policy polls', async () => {
  const { monitor, told, track } = world({ policy: learnedPacing({ lagPrice: 1 }) });
  for (let second = 0; second < 300; second += 2) {
    track(`s${second}`);
    await monitor.clock.advance(2_000);
  }
  await monitor.clock.advance(60_000);
  expect(told).toHaveLength(150);
  for (const { at, after, trackedAt } of told) {
    expect(after).toBeGreaterThanOrEqual(trackedAt);
    // Truly final at multiples of 20 s.
    expect(after).toBeLessThanOrEqual(at - ((at - START_MS) % 20_000));
  }
});

it('is bounded by other submissions of its block, even for one that is polled only once', async () => {
  const firstOften: PolicyFactory = (deps) => ({
    ...byAge(deps),
    register: ({ trackedAt }) => (trackedAt === START_MS ? trackedAt : trackedAt + 49_000),
  });
  const { monitor, told, track } = world({ policy: firstOften });
  track('often');
  await monitor.clock.advance(1_000);
  track('once');
  await monitor.clock.advance(60_000);
  const [often, once] = told;
  expect(once).toMatchObject({ trackedAt: START_MS + 1_000, polls: 1 });
  expect(often?.after).toBeGreaterThan(START_MS + 20_000);
  expect(once?.after).toBe(often?.after);
});

it('a response without information about the submission does not move the bound', async () => {
  let isKeyRefused = false;
  const { monitor, told, track } = world({ answerInstead: () => (isKeyRefused ? unauthorized : undefined) });
  track('a');
  await monitor.clock.advance(20_000);
  const lastOpen = monitor.asked.at(-1)?.at;
  isKeyRefused = true;
  await monitor.clock.advance(100_000);
  isKeyRefused = false;
  await monitor.clock.advance(100_000);
  expect(told.map(({ after }) => after)).toEqual([lastOpen]);
});
