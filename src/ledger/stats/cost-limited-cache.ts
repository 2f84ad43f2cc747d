/** The most of the time that making it may take: 1 %. */
const SHARE = 0.01;

/** Gives the newest value again as long as making it anew would cost too much of the time: what is cheap is always fresh. */
export function costLimitedCache<T>(make: () => T, stopwatchMs: () => number = () => performance.now()): () => T {
  let kept: { value: T; until: number } | undefined;
  return () => {
    const startedAt = stopwatchMs();
    if (kept && startedAt < kept.until) return kept.value;
    const value = make();
    const endedAt = stopwatchMs();
    kept = { value, until: endedAt + (endedAt - startedAt) / SHARE };
    return value;
  };
}
