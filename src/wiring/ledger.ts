import type { Clock } from '../lib/clock.ts';
import type { Config } from '../operations/config/schema.ts';
import type { Log } from '../operations/logging/logger.ts';
import { objectivesOf } from '../reports/objectives-setting.ts';
import { Ledger } from './ledger-stores.ts';
import { Maintenance } from './maintenance.ts';

const DAY_MS = 86_400_000;

type LedgerDeps = {
  config: Config;
  clock: Clock;
  log: Log;
  /**
   * Called if the disk failed to store committed data. The process must then end at once. Default:
   * the error is uncaught.
   */
  onSyncFailed?: ((error: unknown) => void) | undefined;
};

/** Opens the ledger of a server, and makes this server its primary. */
export function openLedger({ config, clock, log, onSyncFailed = throwUncaught }: LedgerDeps) {
  const ledger = new Ledger({
    file: config.database,
    now: clock.now(),
    deferredSync: {
      onFailed(error) {
        log.error({ err: error }, 'ledger.sync_failed');
        onSyncFailed(error);
      },
    },
  });
  if (ledger.tightened.length > 0)
    log.warn({ files: ledger.tightened }, 'ledger.permissions_tightened');
  const { isCopy, generation } = claimed(ledger, clock.now());
  if (isCopy) log.warn({ generation }, 'ledger.continued');
  return ledger;
}

/** Makes this server the primary of the ledger. Closes the ledger if that fails. */
function claimed(ledger: Ledger, now: number): ReturnType<Ledger['claim']> {
  try {
    return ledger.claim(now);
  } catch (error) {
    ledger.close();
    throw error;
  }
}

function throwUncaught(error: unknown): void {
  setImmediate(() => {
    throw error;
  });
}

/** Starts the maintenance of the ledger with the configured retention. */
export function startMaintenance(
  deps: Omit<LedgerDeps, 'onSyncFailed'> & { ledger: Ledger },
): Maintenance {
  const { config, ledger, clock, log } = deps;
  const { submissions_days, submissions_max, events_days } = config.retention;
  const daysOrNever = (days: number) => (days === 0 ? null : days * DAY_MS);
  const maintenance = new Maintenance({
    ledger,
    clock,
    retention: {
      deliveriesMs: config.deliveries.keep_s * 1_000,
      submissionsMs: daysOrNever(submissions_days),
      submissions: submissions_max === 0 ? null : submissions_max,
      eventsMs: daysOrNever(events_days),
      auditMs: daysOrNever(config.audit.keep_days),
    },
    reports: { metadataKey: config.reports.metadata_key ?? null, objectives: objectivesOf(config) },
    onPruned: (counts) => log.info(counts, 'ledger.pruned'),
    onFailed: (error) => log.error({ err: error }, 'ledger.maintenance_failed'),
  });
  maintenance.start();
  return maintenance;
}
