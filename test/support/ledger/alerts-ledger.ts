import { onTestFinished } from 'vitest';
import { Alerts } from '../../../src/alerts/alerts-store.ts';
import { AlertWatch } from '../../../src/alerts/feature.ts';
import type { Ledger } from './ledger-file.ts';

/** Adds the store of alerts to a ledger. */
export function withAlerts<L extends Ledger>(ledger: L) {
  const alerts = new Alerts(ledger.database, ledger);
  return Object.assign(ledger, { alerts });
}

type Deps = ConstructorParameters<typeof AlertWatch>[0];

/** Watches the alerts of a ledger until the test ends. */
export function watchAlerts(deps: Pick<Deps, 'store' | 'clock' | 'onFailed'> & Partial<Deps>) {
  const watch = new AlertWatch({
    upstreams: ['default'],
    thresholds: {
      ...{ failures: 3, backlog: 10 },
      ...{ redisDownMs: 10_000, noWorkersMs: 30_000, chainNodeMs: 60_000, pausedMs: 300_000 },
    },
    checkMs: 5_000,
    redis: () => undefined,
    live: () => ({ unusedNodes: [], pauses: [] }),
    isLedgerWritable: () => true,
    publicUrl: undefined,
    onReported: () => undefined,
    ...deps,
  });
  watch.start();
  onTestFinished(() => watch.stop());
  return watch;
}
