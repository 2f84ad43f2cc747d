import { Gauge, type Registry } from 'prom-client';
import {
  BURN_WINDOW_NAMES,
  budgetLeft,
  burnRate,
  type ObjectiveStatus,
} from '../../submissions/objective.ts';

/** Creates the gauges of the service level objectives and returns the function that sets them. */
export function createObjectiveGauges(
  registry: Registry,
): (statuses: readonly ObjectiveStatus[]) => void {
  const create = <T extends string>(name: string, help: string, ...labelNames: T[]) =>
    new Gauge({
      name: `dawatch_objective_${name}`,
      help,
      labelNames: ['upstream', ...labelNames],
      registers: [registry],
    });
  const target = create(
    'target_ratio',
    'Share of submissions that are to be known as final in time, 0 to 1',
  );
  const within = create('within_seconds', 'Time since tracking within which they are to be known');
  const left = create(
    'error_budget_left_ratio',
    'Unspent share of the error budget of 30 days; negative if more than all is spent',
  );
  const rate = create(
    'burn_rate',
    'Speed at which the error budget is spent, over the window; 1 spends it in 30 days. No sample without submissions',
    'window',
  );
  return (statuses) => {
    for (const gauge of [target, within, left, rate]) gauge.reset();
    for (const { upstream, objective, budget, windows } of statuses) {
      target.set({ upstream }, objective.target);
      within.set({ upstream }, objective.withinMs / 1_000);
      left.set({ upstream }, budgetLeft(budget, objective));
      for (const window of BURN_WINDOW_NAMES) {
        const value = burnRate(windows[window], objective);
        if (value !== null) rate.set({ upstream, window }, value);
      }
    }
  };
}
