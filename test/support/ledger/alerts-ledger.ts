import { Alerts, Mutes } from '../../../src/alerts/alerts-store.ts';
import type { Ledger } from '../../../src/wiring/ledger-stores.ts';

/** Adds the stores of alerts and mutes to a ledger. */
export function withAlerts<L extends Ledger>(ledger: L) {
  const { database, outbox, stats } = ledger;
  const mutes = new Mutes(database);
  const alerts = new Alerts(database, { outbox, stats, mutes });
  return Object.assign(ledger, { mutes, alerts });
}
