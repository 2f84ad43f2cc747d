import { createModel, type Model } from '../../src/sandbox/model.ts';
import { type SandboxOptionsInput, sandboxOptionsSchema } from '../../src/sandbox/options.ts';
import { START_MS } from './open-sandbox.ts';

export const SLOT_MS = 20_000;

/**
 * Sent in parallel, with no delay between a block's finality and the row, so that only the chain
 * causes delays.
 */
export const CHAIN_ONLY = {
  rowUpdateMinS: 0,
  rowUpdateMaxS: 0,
  timeoutS: 1e9,
} satisfies SandboxOptionsInput;
/**
 * As above, and final as soon as it is in a block, so that only the production of blocks causes
 * delays.
 */
export const PRODUCTION_ONLY = {
  ...CHAIN_ONLY,
  finalityGap: 0,
  roundMinS: 0,
  roundTailMeanS: 0,
  stallRate: 0,
} satisfies SandboxOptionsInput;

export function modelOf(options: SandboxOptionsInput): Model {
  return createModel(sandboxOptionsSchema.parse({ rowDelayMs: 0, ...options }));
}

/** One submission: when it was made, its block, and when it first read Finalized. */
export type Draw = { sentMs: number; block: number; finalMs: number };

/** Makes one submission per interval, waits until all are final, and returns them. */
export function draw(options: SandboxOptionsInput, { count = 6_000, everyS = 15 } = {}): Draw[] {
  const model = modelOf(options);
  const sent = Array.from({ length: count }, (_, index) => START_MS + index * everyS * 1_000);
  const ids = sent.map((sentMs) => model.submit('data', sentMs));
  const endMs = START_MS + count * everyS * 1_000 + 1e8;
  return ids.map((id, index) => ({
    sentMs: sent[index] ?? Number.NaN,
    block: model.read(id, endMs)?.block?.number ?? Number.NaN,
    finalMs: model.finalizedAt(id, endMs) ?? Number.NaN,
  }));
}

/**
 * Groups the draws by block number; with the chain alone, those of one block have the same time of
 * finality.
 */
export function finalByBlock(draws: readonly Draw[]): Map<number, number> {
  return new Map(draws.map(({ block, finalMs }) => [block, finalMs]));
}

export function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/**
 * The Kolmogorov–Smirnov statistic of a sample against a distribution function, times the root of
 * the sample's size: above 1.95 in one of a thousand samples of that distribution.
 */
export function distance(sample: readonly number[], cdf: (value: number) => number): number {
  const sorted = sample.toSorted((a, b) => a - b);
  const gaps = sorted.map((value, index) =>
    Math.max(
      Math.abs(cdf(value) - index / sorted.length),
      Math.abs(cdf(value) - (index + 1) / sorted.length),
    ),
  );
  return Math.max(...gaps) * Math.sqrt(sorted.length);
}

export const uniform =
  (from: number, to: number) =>
  (value: number): number =>
    Math.min(1, Math.max(0, (value - from) / (to - from)));

/** The distribution function of an exponential variable plus something even from `from` to `to`. */
export function exponentialPlusUniform(
  mean: number,
  from: number,
  to: number,
): (value: number) => number {
  // The integral of the exponential distribution function from 0 to y.
  const integral = (y: number) => (y <= 0 ? 0 : y - mean * (1 - Math.exp(-y / mean)));
  return (value) => (integral(value - from) - integral(value - to)) / (to - from);
}

/**
 * The distribution function of a variable plus something even from `from` to `to`, by the midpoint
 * rule.
 */
export const plusUniform =
  (cdf: (value: number) => number, from: number, to: number) =>
  (value: number): number =>
    meanOf(
      Array.from({ length: 50 }, (_, index) =>
        cdf(value - from - ((to - from) * (index + 0.5)) / 50),
      ),
    );
