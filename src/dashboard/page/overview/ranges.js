/**
 * What the charts can show, by the name in the address. Hours and days are those of UTC.
 * @type {Record<import('../../../client/api.ts').OverviewRange, { label: string, unit: 'minute' | 'hour' | 'day' }>}
 */
export const RANGES = {
  '15m': { label: '15 min', unit: 'minute' },
  '1h': { label: '1 h', unit: 'minute' },
  '24h': { label: '24 h', unit: 'hour' },
  '7d': { label: '7 d', unit: 'hour' },
  '30d': { label: '30 d', unit: 'day' },
  '90d': { label: '90 d', unit: 'day' },
};

/** Milliseconds of the steps of a range. */
export const STEP_MS = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };
