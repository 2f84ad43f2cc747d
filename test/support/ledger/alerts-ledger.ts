import { Alerts } from '../../../src/alerts/alerts-store.ts';
import type { Ledger } from './ledger-file.ts';

/** Adds the store of alerts to a ledger. */
export function withAlerts<L extends Ledger>(ledger: L) {
  const alerts = new Alerts(ledger.database, ledger);
  return Object.assign(ledger, { alerts });
}
