const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const;

/** Formats a duration with its two largest units: "850 ms", "12 s", "3 min 5 s", "2 d". */
export function durationText(ms: number): string {
  const durationMs = Math.max(0, ms);
  if (durationMs < 1_000) return `${Math.round(durationMs)} ms`;
  let restS = Math.floor(durationMs / 1_000);
  const largest = UNITS.findIndex(([, seconds]) => restS >= seconds);
  const parts: string[] = [];
  for (const [unit, seconds] of UNITS.slice(largest, largest + 2)) {
    const amount = Math.floor(restS / seconds);
    restS -= amount * seconds;
    if (amount > 0) parts.push(`${amount} ${unit}`);
  }
  return parts.join(' ');
}
