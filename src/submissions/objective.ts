/**
 * A service level objective: the share `target` (0 to 1) of the submissions is known to be final
 * `withinMs` after tracking.
 */
export type Objective = { target: number; withinMs: number };

/** Numbers of submissions that were known as final in time, and of those that were not. */
export type ObjectiveCounts = { good: number; bad: number };

/** The error budget is that of the last 30 days. */
export const BUDGET_MS = 30 * 86_400_000;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The windows over which the burn rate is computed, in ms. */
export const BURN_WINDOWS = {
  '5m': 5 * MINUTE_MS,
  '30m': 30 * MINUTE_MS,
  '1h': HOUR_MS,
  '6h': 6 * HOUR_MS,
  '3d': 72 * HOUR_MS,
} as const;
export type BurnWindow = keyof typeof BURN_WINDOWS;
export const BURN_WINDOW_NAMES = Object.keys(BURN_WINDOWS) as BurnWindow[];

/** How an upstream meets its objective. */
export type ObjectiveStatus = {
  upstream: string;
  objective: Objective;
  /** Of the last 30 days. */
  budget: ObjectiveCounts;
  windows: Record<BurnWindow, ObjectiveCounts>;
};

/** Returns the share of submissions that were known in time; null if none was counted. */
export function attained({ good, bad }: ObjectiveCounts): number | null {
  return good + bad === 0 ? null : good / (good + bad);
}

/**
 * Returns how fast the error budget is spent: 1 spends it exactly within its 30 days, 0 spends
 * nothing. null if no submission was counted.
 */
export function burnRate({ good, bad }: ObjectiveCounts, { target }: Objective): number | null {
  // Rounded, because 1 - 0.99 is not exactly 0.01, so that a rate of exactly 1 would be computed as
  // less than 1.
  return good + bad === 0 ? null : Number((bad / (good + bad) / (1 - target)).toPrecision(12));
}

/**
 * Returns the unspent share of the error budget; negative if more than all of it is spent, 1 if no
 * submission was counted.
 */
export function budgetLeft(counts: ObjectiveCounts, objective: Objective): number {
  return 1 - (burnRate(counts, objective) ?? 0);
}

/**
 * Burn rates at which an alert is raised if both windows exceed them. The long window shows that a
 * relevant share of the budget is spent: 2 %, 5 % and 10 % of the budget of 30 days. The short
 * window shows that this continues.
 */
const BURNS: readonly { long: BurnWindow; short: BurnWindow; rate: number }[] = [
  { long: '1h', short: '5m', rate: 14.4 },
  { long: '6h', short: '30m', rate: 6 },
  { long: '3d', short: '6h', rate: 1 },
];
/**
 * Minimum number of late submissions in the long window. With little traffic, a single one would
 * already be a high rate.
 */
const MIN_BAD = 5;

/**
 * Returns the first window in which the budget burns too fast; undefined if there is none. An alert
 * that `isOpen` clears at half the rate.
 */
export function fastestBurn({ windows, objective }: ObjectiveStatus, isOpen: boolean) {
  const burns = (window: BurnWindow, rate: number) =>
    (burnRate(windows[window], objective) ?? 0) >= rate;
  const found = BURNS.find(({ long, short, rate }) => {
    const least = isOpen ? rate / 2 : rate;
    return (isOpen || windows[long].bad >= MIN_BAD) && burns(long, least) && burns(short, least);
  });
  if (!found) return undefined;
  const counts = windows[found.long];
  return { windowMs: BURN_WINDOWS[found.long], counts, rate: burnRate(counts, objective) ?? 0 };
}
