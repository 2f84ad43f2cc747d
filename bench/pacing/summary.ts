import type { Run } from './simulate.ts';

export type Summary = {
  /** Per submission. */
  requests: number;
  meanS: number;
  p50S: number;
  p99S: number;
  worstS: number;
  throttled: number;
};

export function summarize(run: Run): Summary {
  const lags = Float64Array.from(run.lives, ({ detectedAt, finalAt }) => (detectedAt - finalAt) / 1_000).sort();
  const at = (share: number) => lags[Math.min(lags.length - 1, Math.floor(share * lags.length))] ?? 0;
  return {
    requests: run.requests / run.lives.length,
    meanS: lags.reduce((sum, lag) => sum + lag, 0) / Math.max(1, lags.length),
    p50S: at(0.5),
    p99S: at(0.99),
    worstS: at(1),
    throttled: run.throttled,
  };
}
