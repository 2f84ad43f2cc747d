import type { CredentialRecord } from '../access/credentials-store.ts';
import type { TypedServer } from '../http/typed-server.ts';
import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import type { Clock } from '../lib/clock.ts';
import type { Config } from '../operations/config/schema.ts';
import type { Objective } from '../submissions/objective.ts';
import { registerReports } from './reports-routes.ts';
import { Reports } from './reports-store.ts';

type Server = {
  config: Config;
  clock: Clock;
  ledger: {
    database: LedgerDatabase;
    credentials: { list(): CredentialRecord[] };
  };
};

/** Opens the reports, which count each final status in its transaction. */
export function openReports({ config, clock, ledger }: Server) {
  const reports = new Reports(ledger.database, {
    metadataKey: config.reports.metadata_key ?? null,
    objectives: objectivesOf(config),
  });
  return {
    onFinal: reports.count,
    objectives: (now: number) => reports.objectiveStatus(now),
    maintenance: { run: () => reports.maintain(() => clock.now()), minAgeMs: reports.minAgeMs },
    addReadRoutes: (app: TypedServer) =>
      registerReports(app, { reports, clock, credentials: ledger.credentials }),
  };
}

/** Returns the service level objectives by upstream. */
function objectivesOf({ upstreams }: Config): Map<string, Objective> {
  const objectives = Object.entries(upstreams)
    .filter(([, { url, slo }]) => url !== undefined && slo.target_percent > 0)
    .map(([name, { slo }]): [string, Objective] => [
      name,
      { target: slo.target_percent / 100, withinMs: slo.within_s * 1_000 },
    ]);
  return new Map(objectives);
}
