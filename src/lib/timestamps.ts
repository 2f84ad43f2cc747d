const MAX_REMEMBERED = 256;
/**
 * Formatted seconds. The times of a response share few of them, and formatting one takes 1 µs (row
 * intake-batches: 6 %).
 */
const formatted = new Map<number, string>();

/** Formats epoch milliseconds as ISO 8601 in UTC. Throws RangeError. */
export function iso(ms: number): string {
  const whole = Math.trunc(ms);
  const second = Math.floor(whole / 1_000);
  const milliseconds = whole - second * 1_000;
  // Date throws a RangeError for an invalid time.
  const prefix = formatted.get(second) ?? formatSecond(whole, second);
  return `${prefix}${String(milliseconds).padStart(3, '0')}Z`;
}

function formatSecond(ms: number, second: number): string {
  const text = new Date(ms).toISOString().slice(0, -4);
  if (formatted.size === MAX_REMEMBERED) formatted.clear();
  formatted.set(second, text);
  return text;
}
