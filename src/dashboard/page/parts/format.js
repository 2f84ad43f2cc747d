const counts = new Intl.NumberFormat('en');
export function count(value) {
  return counts.format(value);
}

export function decimal(value, digits = 1) {
  return value.toFixed(digits);
}

/** 0.4 % · 31 % · 99.9 %; 0 % and 100 % only where it is certain. */
export function percent(share) {
  const whole = 100 * share;
  if (share <= 0 || share >= 1) return `${decimal(whole, 0)} %`;
  if (whole < 1 || whole > 99) return `${decimal(Math.min(99.9, Math.max(0.1, whole)))} %`;
  return `${decimal(whole, 0)} %`;
}

/** Returns how the times of finality behind detection lags are known. */
export function lagSource(lags) {
  if (lags === null) return '';
  const share = lags.from_chain / lags.count;
  if (share <= 0) return 'Estimated.';
  return share >= 1 ? 'From the chain.' : `${percent(share)} from the chain, the others estimated.`;
}

/** 0.31 s · 41.2 s · 3 min 20 s · 2 h 5 min · 3 d 4 h */
export function duration(s) {
  if (s < 9.995) return `${decimal(s, 2)} s`;
  if (s < 59.95) return `${decimal(s)} s`;
  const whole = Math.round(s);
  if (whole < 3_600) return pair(whole, 60, 'min', 1, 's');
  if (whole < 86_400) return pair(whole, 3_600, 'h', 60, 'min');
  return pair(whole, 86_400, 'd', 3_600, 'h');
}

export function wholeDuration(s) {
  const whole = Math.round(s);
  return whole < 60 ? `${whole} s` : duration(whole);
}

function pair(s, large, largeUnit, small, smallUnit) {
  const rest = Math.floor((s % large) / small);
  return `${Math.floor(s / large)} ${largeUnit}${rest === 0 ? '' : ` ${rest} ${smallUnit}`}`;
}

export function between(from, until) {
  return duration(Math.max(0, Date.parse(until) - Date.parse(from)) / 1_000);
}

/** "2026-01-02 03:04:05 UTC". */
export function absoluteTime(at) {
  return `${utcText(at).slice(0, 19)} UTC`;
}

/** "2026-01-02 03:04:05.123". */
function utcText(at) {
  return new Date(at).toISOString().slice(0, -1).replace('T', ' ');
}

const UNITS = /** @type {const} */ ([
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
]);

/** "12 s ago", "in 3 min", "2 h ago"; "now" within a second. */
export function relativeTime(at, now) {
  const s = (Date.parse(at) - now) / 1_000;
  const [unit, size] = UNITS.find(([, size]) => Math.abs(s) >= size) ?? ['', 0];
  if (size === 0) return 'now';
  const amount = `${Math.floor(Math.abs(s) / size)} ${unit}`;
  return s < 0 ? `${amount} ago` : `in ${amount}`;
}

/** "01-02" of a year. */
export function utcDayOf(ms) {
  return utcText(ms).slice(5, 10);
}

/** "14:00". */
export function utcMinuteOf(ms) {
  return utcText(ms).slice(11, 16);
}

export function text(value) {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}
