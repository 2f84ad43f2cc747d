import type { Run } from './simulate.ts';

export type Summary = {
  /** Per submission. */
  requests: number;
  meanS: number;
  p99S: number;
  throttled: number;
};

export function summarize(run: Run): Summary {
  const lags = Float64Array.from(
    run.submissions,
    ({ detectedAt, finalAt }) => (detectedAt - finalAt) / 1_000,
  ).sort();
  return {
    requests: run.requests / run.submissions.length,
    meanS: lags.reduce((sum, lag) => sum + lag, 0) / Math.max(1, lags.length),
    p99S: quantile(lags, 0.99),
    throttled: run.throttled,
  };
}

/** Returns the quantile of an ascending array; 0 if it is empty. */
export function quantile(sorted: Float64Array, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}
