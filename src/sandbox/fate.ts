import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import type { UpstreamClock } from './clock.ts';
import { digest, seedOf } from './digest.ts';
import type { SandboxOptions } from './options.ts';

const REJECTED_WITHIN_S = 6;
const REJECTIONS = [
  'Transaction was dropped from the pool',
  'Invalid transaction: stale nonce',
  'RPC error: connection closed',
  'Invalid transaction: inability to pay some fees',
] as const;

type Regression = 'none' | 'error' | 'replaced';
type Attempt = { outcome: 'included' } | { outcome: 'failed'; afterMs: number; error: string };

/** What chance has in store for one submission. */
export type Fate = {
  isLost: boolean;
  isDead: boolean;
  isLeftBehind: boolean;
  rowDelayMs: number;
  straggleMs: number;
  regression: Regression;
  /** Draws how the next sending attempt goes. */
  nextAttempt(): Attempt;
};

/**
 * Each submission has a generator of its own, so no one's luck depends on the order in which others are looked at. All
 * draws are always made: changing one rate leaves every other draw as it was, and runs stay comparable.
 */
export function drawFate(options: SandboxOptions, clock: UpstreamClock, ordinal: number): Fate {
  const generator = xoroshiro128plus(seedOf(digest('fate', options.seed, ordinal)));
  const draw = () => uniformFloat64(generator);
  const drawExponential = (meanMs: number) => clock.scale(-meanMs * Math.log(1 - draw()));

  const isLost = draw() < options.lostRate;
  const isDead = draw() < options.deadRate;
  const isLeftBehind = draw() < options.leftBehindRate;
  const rowDelayMs = drawExponential(options.rowDelayMs);
  const isStraggler = draw() < options.stragglerRate;
  const lateMs = drawExponential(options.stragglerMeanS * 1000);
  const isRegressing = draw() < options.regressRate;
  const regressed = draw() < 0.5 ? 'error' : 'replaced';

  return {
    isLost,
    isDead,
    isLeftBehind,
    rowDelayMs,
    straggleMs: isStraggler ? lateMs : 0,
    regression: isRegressing ? regressed : 'none',
    nextAttempt() {
      const fails = draw() < options.errorRate || isDead;
      const timesOut = draw() < options.timeoutRate;
      const rejectedAfterMs = clock.scale(draw() * REJECTED_WITHIN_S * 1000);
      const rejection = REJECTIONS[Math.floor(draw() * REJECTIONS.length)] ?? REJECTIONS[0];
      if (!fails) return { outcome: 'included' };
      if (timesOut) return { outcome: 'failed', afterMs: clock.giveUpMs, error: 'TIMEOUT' };
      return { outcome: 'failed', afterMs: rejectedAfterMs, error: rejection };
    },
  };
}
