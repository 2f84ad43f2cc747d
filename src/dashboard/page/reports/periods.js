import { utcDayOf, utcMinuteOf } from '../parts/format.js';

export const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** Days for which the server keeps hours. */
const HOURLY_DAYS = 8;

/**
 * The lengths of a report by their names in the URL. @type {Record<string, { title: string, days:
 * number }>}
 */
export const PERIODS = {
  day: { title: 'Day', days: 1 },
  week: { title: 'Week', days: 7 },
  quarter: { title: '90 days', days: 90 },
};

/**
 * The first and the last day of a period that ends with the day `to`, or today.
 * @param {string} name @param {string} to "2026-01-31", or "" @param {number} now
 */
export function periodOf(name, to, now) {
  const { days, title } = PERIODS[name] ?? { days: 7, title: 'Week' };
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  const last = Math.min(today, Number.isNaN(Date.parse(to)) ? today : Date.parse(to));
  const first = last - (days - 1) * DAY_MS;
  const isHourly = days < 90 && first > today - HOURLY_DAYS * DAY_MS;
  return {
    title,
    from: dayText(first),
    to: dayText(last),
    interval: isHourly ? 'hour' : 'day',
    earlier: dayText(first - DAY_MS),
    /** Undefined for the newest period. */
    later: last < today ? dayText(Math.min(today, last + days * DAY_MS)) : undefined,
  };
}

/** @param {number} ms */
function dayText(ms) {
  return new Date(ms).toISOString().slice(0, 10);
}

/** @param {string} interval */
export function stepMsOf(interval) {
  return interval === 'hour' ? HOUR_MS : DAY_MS;
}

/**
 * Returns one row of a report for each hour or day up to now; undefined where no submission ended.
 * @param {{ from: string, to: string, interval: string, counted_until: string, rows: readonly any[] }} report
 * @returns {{ at: number[], rows: (any | undefined)[] }} `at`: seconds since the epoch
 */
export function everyRow({ from, to, interval, counted_until, rows }) {
  const stepMs = stepMsOf(interval);
  const byStart = new Map(rows.map((row) => [Date.parse(row.start), row]));
  const end = Math.min(Date.parse(to) + DAY_MS, Date.parse(counted_until) + 1);
  const at = [];
  for (let start = Date.parse(from); start < end; start += stepMs) at.push(start);
  return { at: at.map((start) => start / 1_000), rows: at.map((start) => byStart.get(start)) };
}

/** @param {string} interval @returns {import('../parts/plot.js').Times} */
export function timesOf(interval) {
  const empty = 'No data in this period.';
  if (interval === 'day')
    return { title: 'Day', name: utcDayOf, mark: utcDayOf, empty, isUtc: true };
  const name = (/** @type {number} */ at) => `${utcDayOf(at)} ${utcMinuteOf(at)}`;
  const mark = (/** @type {number} */ at) => (at % DAY_MS === 0 ? utcDayOf(at) : utcMinuteOf(at));
  return { title: 'Hour', name, mark, empty, isUtc: true };
}
