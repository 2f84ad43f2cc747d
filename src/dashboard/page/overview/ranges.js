import { withQuery } from '../data/api.js';
import { dayText, everyRow } from '../reports/reports-page.js';

/** @import { Overview, ReportRow } from '../../../client/api.ts' */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** Days for which the server keeps hours, without the current one. */
const HOURLY_DAYS = 7;

/**
 * What the charts can show, by the name in the address. Minutes come with the overview, hours and
 * days are those of UTC.
 * @type {Record<string, { label: string, unit: 'minute' | 'hour' | 'day', steps: number }>}
 */
export const RANGES = {
  '15m': { label: '15 min', unit: 'minute', steps: 15 },
  '1h': { label: '1 h', unit: 'minute', steps: 60 },
  '24h': { label: '24 h', unit: 'hour', steps: 24 },
  '7d': { label: '7 d', unit: 'hour', steps: 7 * 24 },
  '30d': { label: '30 d', unit: 'day', steps: 30 },
  '90d': { label: '90 d', unit: 'day', steps: 90 },
};

/** Milliseconds of the steps of a range. */
export const STEP_MS = { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS };

/**
 * What became final in a time: seconds, and null where there is nothing.
 * @typedef {{ finalized: number, finality50: number | null, lag50: number | null }} Sum
 * @typedef {Sum & { at: number, finality99: number | null, lag99: number | null }} Step of a chart
 *   `at`: epoch milliseconds
 * @typedef {{ now: readonly Step[], before: readonly Sum[] }} Steps
 *   `before`: the same time before, in steps of any length
 */

/**
 * The newest minutes, and as many before.
 * @param {Pick<Overview, 'per_minute' | 'hour_before'>} overview @param {number} steps
 * @returns {Steps}
 */
export function stepsOfMinutes({ per_minute, hour_before: hour }, steps) {
  const all = per_minute.map((minute) => ({
    at: Date.parse(minute.at),
    finalized: minute.finalized,
    finality50: minute.time_to_finality_p50_s,
    finality99: minute.time_to_finality_p99_s,
    lag50: minute.detection_lag_p50_s,
    lag99: minute.detection_lag_p99_s,
  }));
  const now = all.slice(-steps);
  if (all.length >= 2 * steps) return { now, before: all.slice(-2 * steps, -steps) };
  const { finalized, time_to_finality_s: finality, detection_lag_s: lag } = hour;
  return {
    now,
    before: [{ finalized, finality50: finality?.p50 ?? null, lag50: lag?.p50 ?? null }],
  };
}

/**
 * The hours or days of all upstreams, and those before.
 * @param {import('../data/api.js').Api} api @param {(typeof RANGES)[string]} range
 * @param {{ now: number, signal: AbortSignal }} options @returns {Promise<Steps>}
 */
export async function loadSteps(api, { unit, steps }, { now, signal }) {
  const days = Math.ceil((steps * STEP_MS[unit]) / DAY_MS);
  const read = async (
    /** @type {number} */ from,
    /** @type {number} */ to,
    /** @type {'hour' | 'day'} */ interval,
  ) => {
    const query = { from: dayText(from), to: dayText(to), interval, group_by: 'none' };
    /** @type {import('../../../client/api.ts').Report} */
    const report = await api.get(withQuery('v1/reports', query), { signal });
    const { at, rows } = everyRow(report, now);
    return rows.map((row, index) => stepOf((at[index] ?? 0) * 1_000, row));
  };
  if (unit === 'hour' && days < HOURLY_DAYS) {
    const all = await read(now - 2 * days * DAY_MS, now, 'hour');
    return { now: all.slice(-steps), before: all.slice(-2 * steps, -steps) };
  }
  // Hours begin in the middle of a day, so the whole days before that one are compared.
  const last = now - (unit === 'day' ? days : days + 1) * DAY_MS;
  const [shown, before] = await Promise.all([
    read(last + DAY_MS, now, unit === 'day' ? 'day' : 'hour'),
    read(last - (days - 1) * DAY_MS, last, 'day'),
  ]);
  return { now: shown.slice(-steps), before };
}

/** @param {number} at @param {ReportRow | undefined} row undefined: no submission ended @returns {Step} */
function stepOf(at, row) {
  return {
    at,
    finalized: row?.submissions.finalized ?? 0,
    finality50: row?.time_to_finality_s?.p50 ?? null,
    finality99: row?.time_to_finality_s?.p99 ?? null,
    lag50: row?.detection_lag_s?.p50 ?? null,
    lag99: row?.detection_lag_s?.p99 ?? null,
  };
}

/**
 * The share of the steps that has passed, because the newest one has not ended.
 * @param {readonly Step[]} steps @param {(typeof RANGES)[string]['unit']} unit @param {string} at now
 */
export function passedShare(steps, unit, at) {
  const passedMs = Date.parse(at) - (steps[0]?.at ?? 0);
  return Math.min(1, passedMs / (steps.length * STEP_MS[unit]));
}

/** @param {readonly Sum[]} steps */
export function finalizedIn(steps) {
  return steps.reduce((sum, { finalized }) => sum + finalized, 0);
}

/**
 * The median of the steps, each weighted by its finalizations; null without any.
 * @param {readonly Sum[]} steps @param {'finality50' | 'lag50'} name
 */
export function medianOf(steps, name) {
  const known = steps
    .flatMap(({ finalized, [name]: value }) => (value === null ? [] : [{ value, finalized }]))
    .toSorted((one, other) => one.value - other.value);
  const half = known.reduce((sum, { finalized }) => sum + finalized, 0) / 2;
  let passed = 0;
  for (const { value, finalized } of known) {
    passed += finalized;
    if (passed >= half) return value;
  }
  return null;
}
