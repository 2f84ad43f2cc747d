/** The most of the time that computing the value may take. */
const MAX_SHARE = 0.01;

/** Caches the result of `compute` for 100 times as long as it took, so that computing it uses at most 1 % of the time. */
export function costLimitedCache<T>(compute: () => T, stopwatchMs: () => number = () => performance.now()): () => T {
  let cached: { value: T; until: number } | undefined;
  return () => {
    const startedAt = stopwatchMs();
    if (cached && startedAt < cached.until) return cached.value;
    const value = compute();
    const endedAt = stopwatchMs();
    cached = { value, until: endedAt + (endedAt - startedAt) / MAX_SHARE };
    return value;
  };
}
