import type { Run } from './simulate.ts';

export type Summary = {
  /** Per submission. */
  requests: number;
  meanS: number;
  p99S: number;
  /** Mean and 99 % quantile of the lags as dawatch estimates them. */
  estimatedMeanS: number;
  estimatedP99S: number;
  throttled: number;
};

export function summarize(run: Run): Summary {
  const lags = inS(run.submissions.map(({ detectedAt, finalAt }) => detectedAt - finalAt));
  const estimates = inS(run.submissions.flatMap(({ estimatedLagMs }) => estimatedLagMs ?? []));
  return {
    requests: run.requests / run.submissions.length,
    meanS: mean(lags),
    p99S: quantile(lags, 0.99),
    estimatedMeanS: mean(estimates),
    estimatedP99S: quantile(estimates, 0.99),
    throttled: run.throttled,
  };
}

/** Returns the durations in seconds, ascending. */
function inS(durationsMs: readonly number[]): Float64Array {
  return Float64Array.from(durationsMs, (ms) => ms / 1_000).sort();
}

function mean(values: Float64Array): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

/** Returns the quantile of an ascending array; 0 if it is empty. */
export function quantile(sorted: Float64Array, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}
