import type { Config } from '../config/schema.ts';
import type { Clock } from '../domain/clock.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { Maintenance } from '../ledger/maintenance/maintenance.ts';
import type { Log } from '../logging/logger.ts';

const DAY_MS = 86_400_000;

/** Keeps the ledger as small as the settings want it. */
export function startUpkeep(deps: { config: Config; ledger: Ledger; clock: Clock; log: Log }): Maintenance {
  const { config, ledger, clock, log } = deps;
  const { submissions_days, submissions_max, events_days } = config.retention;
  const daysOrNever = (days: number) => (days === 0 ? null : days * DAY_MS);
  const upkeep = new Maintenance({
    ledger,
    clock,
    retention: {
      deliveriesMs: config.deliveries.keep_s * 1_000,
      submissionsMs: daysOrNever(submissions_days),
      submissions: submissions_max === 0 ? null : submissions_max,
      eventsMs: daysOrNever(events_days),
    },
    onPruned: (counts) => log.info(counts, 'ledger.pruned'),
    onFailed: (error) => log.error({ err: error }, 'ledger.maintenance_failed'),
  });
  upkeep.start();
  return upkeep;
}
