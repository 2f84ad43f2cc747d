import { describe, expect, it } from 'vitest';
import { arrivalsOf } from '../../bench/pacing/arrivals.ts';
import { RULES } from '../../bench/pacing/rules.ts';
import { sandboxWorld } from '../../bench/pacing/sandbox-world.ts';
import { type Run, simulate, type World } from '../../bench/pacing/simulate.ts';
import { seededRandom } from '../../bench/support/random.ts';
import { eventPacing, type PolicyFactory } from '../../src/pacing/index.ts';
import {
  FINALIZED,
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
  SLACK_MS,
} from '../support/virtual-time/pacing.ts';

const AMPLE = { requests: 10_000, perMs: 1_000, concurrency: 10_000 };
const LEARNED = eventPacing({ lagPrice: 1 });
const EXPONENTIAL = RULES.exponential as PolicyFactory;
const SEED = 3;

function run(
  world: World,
  policy: PolicyFactory,
  { perS = 0.1, submissions = 200, endMs = Infinity } = {},
): Run {
  const arrivals = arrivalsOf({ kind: 'poisson', perS, submissions }, seededRandom(SEED));
  return simulate({ world, arrivals, budget: AMPLE, policy, seed: SEED, endMs });
}

/** Excludes the first third, during which the policy learns. */
const longRunCost = ({ submissions }: Run) => costOf(submissions.slice(submissions.length / 3));

describe('for any distribution of finality time', () => {
  it.each(Object.entries(SHAPES))(
    '%s: the cost is at most 10 % above the exponential rule, and the safety net holds',
    (_, finality) => {
      const world = () => worldOf(finality, seededRandom(SEED));
      const learned = run(world(), LEARNED);
      expect(longRunCost(learned)).toBeLessThan(1.1 * longRunCost(run(world(), EXPONENTIAL)));
      expect(excessOverSafetyNet(learned.submissions)).toBeLessThan(SLACK_MS);
    },
  );

  it('behind serial senders with stalls and timeouts, the safety net holds', () => {
    const world = sandboxWorld({ seed: 2, world: 'rough', senders: 3, stallRate: 0.05 });
    expect(excessOverSafetyNet(run(world, LEARNED).submissions)).toBeLessThan(SLACK_MS);
  });

  it('never: fewer requests than the exponential rule, and the safety net holds', () => {
    const never = () => worldOf(() => ({ at: Infinity, block: null }), seededRandom(SEED));
    const learned = run(never(), LEARNED, { submissions: 50, endMs: 4 * 3_600_000 });
    expect(learned.requests).toBeLessThan(
      run(never(), EXPONENTIAL, { submissions: 50, endMs: 4 * 3_600_000 }).requests,
    );
    expect(excessOverSafetyNet(learned.submissions)).toBeLessThan(SLACK_MS);
    for (const { polledAt } of learned.submissions)
      expect(polledAt.at(-1)).toBeGreaterThan(4 * 3_600_000 - 301_000);
  });
});

it('six of 90 submissions whose polls hang delay the first polls of the others by seconds at most', () => {
  const scheduler = createScheduler({ ...AMPLE, policy: LEARNED });
  const finality = periodic(20);
  const random = seededRandom(SEED);
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
