import { expect, it } from 'vitest';
import type { PolicyFactory } from '../../src/pacing/index.ts';
import { learnedPacing } from '../../src/pacing/index.ts';
import type { Finality } from '../../src/polling/listeners.ts';
import type { UpstreamResponse } from '../../src/submissions/classify.ts';
import { byAge } from '../support/virtual-time/pacing.ts';
import {
  openWatcher,
  pending,
  response,
  START_MS,
} from '../support/virtual-time/virtual-watcher.ts';

const responseOf = (block: number) =>
  response(200, {
    state: 'Finalized',
    error: null,
    data: { block_hash: '0xabc', block_number: block },
  });

/**
 * An upstream where all submissions become final 40 s after the start and every 20 s from then on.
 */
function world({
  respondInstead,
  policy = byAge,
}: {
  respondInstead?: () => UpstreamResponse | undefined;
  policy?: PolicyFactory;
} = {}) {
  const finalities: Finality[] = [];
  const now = () => monitor.clock.now();
  const bornAt = new Map<string, number>();
  const monitor = openWatcher({
    respond(id) {
      const other = respondInstead?.();
      if (other) return other;
      const block = Math.ceil(((bornAt.get(id) ?? START_MS) + 25_000 - START_MS) / 20_000);
      return now() >= START_MS + block * 20_000 ? responseOf(block) : pending;
    },
    policy,
    listener: { finalized: (finality) => finalities.push(finality) },
  });
  return {
    monitor,
    reported: finalities,
    track(id: string, bornMs = 0) {
      bornAt.set(id, now() - bornMs);
      monitor.track([id], bornMs > 0 ? { trackedAt: now() - bornMs } : {});
    },
  };
}

it('is reported once, with the time it was last found open, its polls and its duration', async () => {
  const { monitor, reported: finalities, track } = world();
  track('a');
  await monitor.clock.advance(60_000);
  expect(finalities).toHaveLength(1);
  const [{ at = 0, after = 0, trackedAt, polls, upstream } = {}] = finalities;
  const pollTimes = monitor.polls.map((one) => one.at);
  expect({ trackedAt, polls, upstream }).toEqual({
    trackedAt: START_MS,
    polls: pollTimes.length,
    upstream: 'default',
  });
  expect(at).toBe(pollTimes.at(-1));
  expect(after).toBe(pollTimes.at(-2));
  expect(after).toBeLessThan(START_MS + 40_000);
  expect(at).toBeGreaterThanOrEqual(START_MS + 40_000);
});

it('is never bounded too late, whenever the learned policy polls', async () => {
  const {
    monitor,
    reported: finalities,
    track,
  } = world({ policy: learnedPacing({ lagPrice: 1 }) });
  for (let second = 0; second < 300; second += 2) {
    track(`s${second}`);
    await monitor.clock.advance(2_000);
  }
  await monitor.clock.advance(60_000);
  expect(finalities).toHaveLength(150);
  for (const { at, after, trackedAt } of finalities) {
    expect(after).toBeGreaterThanOrEqual(trackedAt);
    // The submissions become final at multiples of 20 s.
    expect(after).toBeLessThanOrEqual(at - ((at - START_MS) % 20_000));
  }
});

it('is bounded by other submissions of its block, even for one that is polled only once', async () => {
  const firstOften: PolicyFactory = (deps) => ({
    ...byAge(deps),
    register: ({ trackedAt }) => (trackedAt === START_MS ? trackedAt : trackedAt + 49_000),
  });
  const { monitor, reported: finalities, track } = world({ policy: firstOften });
  track('often');
  await monitor.clock.advance(1_000);
  track('once');
  await monitor.clock.advance(60_000);
  const [often, once] = finalities;
  expect(once).toMatchObject({ trackedAt: START_MS + 1_000, polls: 1 });
  expect(often?.after).toBeGreaterThan(START_MS + 20_000);
  expect(once?.after).toBe(often?.after);
});

it('of an import is bounded by the import, before which dawatch could not find it', async () => {
  const { monitor, reported: finalities, track } = world();
  track('a', 48 * 3_600_000);
  await monitor.clock.advance(60_000);
  const [{ at = 0, after, trackedAt } = {}] = finalities;
  expect({ after, trackedAt }).toEqual({ after: START_MS, trackedAt: START_MS - 48 * 3_600_000 });
  expect(at).toBeLessThan(START_MS + 5_000);
});
