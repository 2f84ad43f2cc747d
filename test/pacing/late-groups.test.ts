import { describe, expect, it } from 'vitest';
import { type Arrivals, arrivalsOf } from '../../bench/pacing/arrivals.ts';
import { sandboxWorld } from '../../bench/pacing/sandbox-world.ts';
import { simulate } from '../../bench/pacing/simulate.ts';
import { seededRandom } from '../../bench/support/random.ts';
import { learnedPacing } from '../../src/pacing/index.ts';
import type { SandboxOptionsInput } from '../../src/sandbox/options.ts';
import { type Finality, worldOf } from '../support/virtual-time/finality-worlds.ts';

const BUDGET = { requests: 10_000, perMs: 1_000, concurrency: 10_000 };
const policy = () => learnedPacing({ lagPrice: 1 });
const bursts = (submissions: number): Arrivals => ({
  kind: 'bursts',
  size: 50,
  everyS: 3_600,
  delayMaxS: 60,
  submissions,
});

/** Returns the lag of each submission (s), in order. */
function lagsOf(upstream: SandboxOptionsInput, arrivals: Arrivals, seed: number): number[] {
  const { submissions } = simulate({
    world: sandboxWorld({ seed, ...upstream }),
    arrivals: arrivalsOf(arrivals, seededRandom(seed)),
    budget: BUDGET,
    policy: policy(),
    seed,
  });
  return submissions.map(({ detectedAt, finalAt }) => (detectedAt - finalAt) / 1_000);
}

// A group that is polled a slot late is found final by its first poll, which fits the belief that
// it became final just then.
describe('a belief that all groups become final a slot later than they do', () => {
  it.each([
    {
      senders: 8,
      world: 'calm',
      seed: 3,
      because: 'finality in every second slot looks like a slot twice as long',
    },
    { senders: 3, world: 'usual', seed: 3, because: 'wide intervals fit every short slot' },
    { senders: 8, world: 'usual', seed: 6, because: 'few phases fit several cuts' },
  ] as const)(
    'does not persist behind $senders senders ($world): $because',
    ({ senders, world, seed }) => {
      const lags = lagsOf({ world, senders }, bursts(250), seed);
      for (let burst = 1; burst < 5; burst++) {
        const late = lags.slice(50 * burst, 50 * (burst + 1)).filter((lag) => lag > 10);
        expect(late.length, `burst ${burst}`).toBeLessThan(10);
      }
    },
  );

  it('does not persist for the submissions that are sent just before the cut', () => {
    const lags = lagsOf({ world: 'calm' }, { kind: 'poisson', perS: 0.02, submissions: 270 }, 1);
    expect(lags.slice(50).filter((lag) => lag > 10)).toHaveLength(0);
  });
});

it('during a stall, one submission is polled at a time on behalf of all', () => {
  const [stallS, endS] = [1_200, 1_500];
  // Finality one slot after the next block, but none during the stall.
  const finality: Finality = (now, random) => {
    const slot = Math.floor(now / 20_000) + 2;
    const at = slot * 20_000 + 2_000 + 500 * random();
    const isStalled = at > startMs + 1_000 * stallS && at < startMs + 1_000 * endS;
    return { at: isStalled ? startMs + 1_000 * endS + 500 * random() : at, block: null };
  };
  const startMs = Math.floor(1_760_000_003_217 / 20_000) * 20_000;
  const { submissions } = simulate({
    world: worldOf(finality, seededRandom(4)),
    arrivals: arrivalsOf({ kind: 'poisson', perS: 0.2, submissions: 400 }, seededRandom(4)),
    budget: BUDGET,
    policy: policy(),
    seed: 4,
  });
  const times = submissions
    .flatMap(({ polledAt }) => polledAt)
    .filter((at) => at > 1_000 * (stallS + 20) && at < 1_000 * (endS - 20))
    .sort((a, b) => a - b);
  const mostAtOnce = Math.max(
    ...times.map((at) => times.filter((other) => other >= at && other < at + 100).length),
  );
  expect(times.length).toBeGreaterThan(50);
  expect(mostAtOnce).toBeLessThanOrEqual(4);
});

describe('while no slot time is known', () => {
  it('many submissions need at most two requests each, learning included', () => {
    const { submissions, requests } = simulate({
      world: sandboxWorld({ world: 'usual', seed: 7 }),
      arrivals: arrivalsOf({ kind: 'poisson', perS: 2, submissions: 600 }, seededRandom(7)),
      budget: BUDGET,
      policy: policy(),
      seed: 7,
    });
    expect(requests / submissions.length).toBeLessThan(2);
  });

  it('a queue behind serial senders is followed closely, however old its submissions are', () => {
    const lags = lagsOf({ world: 'usual', senders: 3 }, bursts(50), 9);
    expect(lags.filter((lag) => lag > 10)).toHaveLength(0);
  });

  it('the end of a stall is found for all submissions soon, in whatever order they are polled', () => {
    const lags = lagsOf({ world: 'rough' }, { kind: 'poisson', perS: 0.2, submissions: 60 }, 8);
    expect(lags.filter((lag) => lag > 30)).toHaveLength(0);
  });
});
