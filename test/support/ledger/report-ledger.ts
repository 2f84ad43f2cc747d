import { Alerts, Mutes } from '../../../src/alerts/alerts-store.ts';
import { type ReportSettings, Reports } from '../../../src/reports/reports-store.ts';
import type { ObjectiveStatus } from '../../../src/submissions/objective.ts';
import type { FinalitySource } from '../../../src/submissions/submission.ts';
import { Ledger } from '../../../src/wiring/ledger-stores.ts';
import { context, finalEnvelope, observation, VERDICTS } from './domain.ts';
import { createLedger, trackRequest } from './ledger-file.ts';

export const DAY_MS = 86_400_000;
/** The fees of each finalized submission: beyond 2^53, and their sum beyond 2^64. */
export const FEES = '18446744073709551615';

/** Adds reports to a ledger, which count from then on. */
export function withReports<L extends Ledger>(ledger: L, settings: Partial<ReportSettings> = {}) {
  const defaults = { metadataKey: null, objectives: new Map() };
  const reports = new Reports(ledger.database, { ...defaults, ...settings });
  ledger.onFinal.push(reports.count);
  return Object.assign(ledger, { reports });
}

/**
 * Creates a ledger with counted reports: today, two finalized submissions of the team billing,
 * tracked with DAWATCH_API_KEY, and a cancelled one of a queue; yesterday, a finalized one of the
 * credential `nightly`. All of `default`.
 */
export function fillReports(file: string, now = Date.now()): void {
  createLedger(file);
  const objective = { target: 0.5, withinMs: 60_000 };
  const ledger = withReports(new Ledger({ file, now }), {
    metadataKey: 'team',
    objectives: new Map([['default', objective]]),
  });
  ledger.upstream('default');
  const credential = ledger.credentials.add(
    { hash: Buffer.from('x'), role: 'service', name: '=nightly' },
    0,
  ).id;
  // Noon, or earlier in the mornings, so that the day is known whenever the tests run.
  const today = Math.min(now, Math.floor(now / DAY_MS) * DAY_MS + DAY_MS / 2);
  const finalize = (
    ids: readonly string[],
    at: number,
    fields: Parameters<typeof trackRequest>[1],
    source: FinalitySource,
  ) => {
    ledger.track(
      ids.map((id) => trackRequest(id, { deadlineAt: at + DAY_MS, ...fields })),
      at - 40_000,
    );
    const envelope = JSON.stringify(finalEnvelope({ fees: FEES }));
    const found = ids.map((id) => observation({ ...VERDICTS.finalized, envelope }, at, id));
    const detection = { finalityAt: at - 1_000, source, lagMs: 1_000 };
    ledger.record(found, context(), new Map(found.map((one) => [one, { detection }])));
  };
  finalize(['y'], today - DAY_MS, { credential, metadata: { team: '=nightly' } }, 'estimate');
  finalize(['a', 'b'], today, { credential: 0, metadata: { team: 'billing' } }, 'chain');
  ledger.track([trackRequest('c', { deadlineAt: today + DAY_MS })], today);
  ledger.cancel(['c'], today);
  // In the mornings the time of the objective has not yet passed for the submissions of today.
  for (const _ of ledger.reports.maintain(() => now + objective.withinMs));
  ledger.close();
}

export const REPORT_SETTINGS = {
  reports: { metadata_key: 'team' },
  upstream: { slo: { target_percent: 50, within_s: 60 } },
} as const;

/** Adds the stores of alerts and mutes to a ledger. */
export function withAlerts<L extends Ledger>(
  ledger: L,
  objectives: (now: number) => ObjectiveStatus[] = () => [],
) {
  const { database, outbox, stats } = ledger;
  const mutes = new Mutes(database);
  const alerts = new Alerts(database, { outbox, stats, mutes, objectives });
  return Object.assign(ledger, { mutes, alerts });
}
