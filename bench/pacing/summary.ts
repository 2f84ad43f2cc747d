import type { Run } from './simulate.ts';

type Cost = { requests: number; meanS: number; p99S: number; cost: number };

/** Requests are per submission; `cost`: requests + seconds of mean lag. */
export type Summary = Cost & {
  /** Of the submissions tracked in the first five minutes, and later. */
  firstFiveMinutes: Cost;
  fromMinuteFive: Cost;
  /** Mean and 99 % quantile of the lags as dawatch estimates them. */
  estimatedMeanS: number;
  estimatedP99S: number;
  throttled: number;
};

const FIVE_MINUTES_MS = 300_000;

export function summarize({ submissions, throttled }: Run): Summary {
  const estimates = inS(submissions.flatMap(({ estimatedLagMs }) => estimatedLagMs ?? []));
  return {
    ...costOf(submissions),
    firstFiveMinutes: costOf(submissions.filter(({ trackedAt }) => trackedAt < FIVE_MINUTES_MS)),
    fromMinuteFive: costOf(submissions.filter(({ trackedAt }) => trackedAt >= FIVE_MINUTES_MS)),
    estimatedMeanS: meanOf(estimates),
    estimatedP99S: quantile(estimates, 0.99),
    throttled,
  };
}

function costOf(submissions: Run['submissions']): Cost {
  const lags = inS(submissions.map(({ detectedAt, finalAt }) => detectedAt - finalAt));
  const polls = submissions.reduce((sum, { polledAt }) => sum + polledAt.length, 0);
  const requests = polls / submissions.length;
  const meanS = meanOf(lags);
  return { requests, meanS, p99S: quantile(lags, 0.99), cost: requests + meanS };
}

/** Returns the durations in seconds, ascending. */
function inS(durationsMs: readonly number[]): Float64Array {
  return Float64Array.from(durationsMs, (ms) => ms / 1_000).sort();
}

/** Returns the quantile of an ascending array; 0 if it is empty. */
export function quantile(sorted: Float64Array | readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}

/** NaN without values. */
export function meanOf(values: Float64Array | readonly number[]): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum / values.length;
}

/** NaN without values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (index: number) => sorted[index] ?? Number.NaN;
  return (at(Math.floor((sorted.length - 1) / 2)) + at(Math.floor(sorted.length / 2))) / 2;
}
