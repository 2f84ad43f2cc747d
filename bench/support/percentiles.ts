/** Returns the percentile of unsorted values; `hundredths` is 0 to 100. */
export function percentile(values: readonly number[], hundredths: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return (
    sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * hundredths) / 100))] ??
    Number.NaN
  );
}
