import type { UpstreamClock } from '../clock.ts';
import type { SandboxOptions } from '../options.ts';
import { createRandomStream } from './random-stream.ts';

const REJECTED_WITHIN_S = 6;
const STRAGGLER_MEAN_S = 60;
const REJECTIONS = [
  'Transaction was dropped from the pool',
  'Invalid transaction: stale nonce',
  'RPC error: connection closed',
  'Invalid transaction: inability to pay some fees',
] as const;

/** Of submissions that never become final. */
const DEAD_ENDS = [
  'Insufficient assigned credits for user id',
  'Insufficient fallback credits for user id',
  'Insufficient credits',
  'Invalid credit selection',
] as const;

type Regression = 'none' | 'error' | 'replaced';
type Attempt =
  | { result: 'failed'; afterMs: number; error: string }
  | {
      result: 'included';
      /**
       * Returns when the row becomes Finalized for a transaction sent at sentMs and final at
       * finalMs.
       */
      rowUpdatedAt(sentMs: number, finalMs: number): number;
    };

/** The random decisions about one submission. */
export type SubmissionPlan = {
  isLost: boolean;
  isDead: boolean;
  rowDelayMs: number;
  /** From the submit to the queue of the senders. */
  queueDelayMs: number;
  regression: Regression;
  /** Draws the result of the next sending attempt. */
  nextAttempt(): Attempt;
};

/**
 * Draws the decisions about a submission from a stream of its own, so that they do not depend on
 * other submissions. All values are always drawn, so that changing one rate does not change the
 * other draws.
 */
export function planSubmission(
  options: SandboxOptions,
  clock: UpstreamClock,
  ordinal: number,
): SubmissionPlan {
  const chance = createRandomStream('fate', options.seed, ordinal);

  const isLost = chance.happens(options.lostRate);
  const isDead = chance.happens(options.deadRate);
  const sendDelayS = options.sendDelayMinS + chance.exponential(options.sendDelayMeanS);
  const rowDelayMs = clock.seconds(chance.exponential(options.rowDelayMs / 1000));
  const isStraggler = chance.happens(options.stragglerRate);
  const lateS = chance.exponential(STRAGGLER_MEAN_S);
  const isRegressing = chance.happens(options.regressRate);
  const regressed = chance.happens(0.5) ? 'error' : 'replaced';

  function drawRowUpdate(): (sentMs: number, finalMs: number) => number {
    const pollMs = clock.seconds(chance.between(options.senderPollMinS, options.senderPollMaxS));
    const share = chance.uniform();
    const between = (minS: number, maxS: number) => clock.seconds(minS + (maxS - minS) * share);
    if (options.senders === 0) {
      const updateMs = between(options.rowUpdateMinS, options.rowUpdateMaxS);
      return (_sentMs, finalMs) => finalMs + updateMs;
    }
    const updateMs = between(options.senderUpdateMinS, options.senderUpdateMaxS);
    return (sentMs, finalMs) => firstPollAt(sentMs, pollMs, finalMs) + updateMs;
  }

  return {
    isLost,
    isDead,
    rowDelayMs,
    queueDelayMs: clock.seconds(
      (options.senders === 0 ? sendDelayS : 0) + (isStraggler ? lateS : 0),
    ),
    regression: isRegressing ? regressed : 'none',
    nextAttempt() {
      const fails = chance.happens(options.errorRate) || isDead;
      const timesOut = chance.happens(options.timeoutRate);
      const rejectedAfterMs = clock.seconds(chance.uniform() * REJECTED_WITHIN_S);
      const texts = isDead ? DEAD_ENDS : REJECTIONS;
      const rejection = texts[Math.floor(chance.uniform() * texts.length)] ?? texts[0];
      const rowUpdatedAt = drawRowUpdate();
      if (!fails) return { result: 'included', rowUpdatedAt };
      if (timesOut) return { result: 'failed', afterMs: clock.timeoutMs, error: 'TIMEOUT' };
      return { result: 'failed', afterMs: rejectedAfterMs, error: rejection };
    },
  };
}

/**
 * Returns the first poll of a sender at or after finality. A sender polls at sentMs + pollMs,
 * sentMs + 2 pollMs and so on.
 */
function firstPollAt(sentMs: number, pollMs: number, finalMs: number): number {
  return pollMs === 0
    ? finalMs
    : sentMs + pollMs * Math.max(1, Math.ceil((finalMs - sentMs) / pollMs));
}
