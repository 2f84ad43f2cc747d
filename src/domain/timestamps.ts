/** Seconds of which the text is remembered; a power of two. */
const REMEMBERED = 256;

const seconds = new Float64Array(REMEMBERED).fill(Number.NaN);
const texts = new Array<string>(REMEMBERED).fill('');
const MILLISECONDS = Array.from({ length: 1_000 }, (_, ms) => `${String(ms).padStart(3, '0')}Z`);

/**
 * Epoch milliseconds as ISO 8601 in UTC, as Date writes it. Throws RangeError. Most times of an answer are in seconds that were
 * written just before, and writing one anew takes ten times as long as remembering it.
 */
export function iso(ms: number): string {
  const whole = Math.trunc(ms);
  const second = Math.floor(whole / 1_000);
  const place = second & (REMEMBERED - 1);
  if (seconds[place] !== second) {
    texts[place] = new Date(whole).toISOString().slice(0, -4);
    seconds[place] = second;
  }
  return texts[place] + (MILLISECONDS[whole - second * 1_000] as string);
}
