import type { CredentialRecord } from '../access/credentials-store.ts';
import type { TypedServer } from '../http/typed-server.ts';
import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import type { Clock } from '../lib/clock.ts';
import type { Config } from '../operations/config/schema.ts';
import type { Objective } from '../submissions/objective.ts';
import { ObjectiveSlices } from './objective-slices-store.ts';
import { Reports } from './reports-store.ts';
import { registerReports } from './routes-reports.ts';

/** Rows of one transaction, which takes two or three milliseconds while its pages are in memory. */
const HISTORY_PER_STEP = 100;
const OBJECTIVES_PER_STEP = 500;
const REPORT_ROWS_PER_STEP = 50;
const PRUNE_MS = 3_600_000;
/** Counting follows the time of an objective by up to one run of the maintenance. */
const COUNT_MS = 60_000;

type Server = {
  config: Config;
  clock: Clock;
  ledger: {
    database: LedgerDatabase;
    credentials: { list(): CredentialRecord[] };
  };
};

/** Opens the reports: they are counted by the maintenance and served by `/v1/reports`. */
export function openReports({ config, clock, ledger }: Server) {
  const objectives = objectivesOf(config);
  const metadataKey = config.reports.metadata_key ?? null;
  const stores = {
    reports: new Reports(ledger.database),
    objectives: new ObjectiveSlices(ledger.database),
  };
  return {
    objectives: (now: number) => stores.objectives.status(objectives, now),
    maintenance: reportMaintenance({ ...stores, clock, settings: { metadataKey, objectives } }),
    addReadRoutes(app: TypedServer): void {
      const { credentials } = ledger;
      registerReports(app, { ledger: stores, clock, credentials, metadataKey, objectives });
    },
  };
}

/** What the reports add to the maintenance of the ledger. */
export function reportMaintenance({
  reports,
  objectives,
  clock,
  settings,
}: {
  reports: Reports;
  objectives: ObjectiveSlices;
  clock: Clock;
  settings: {
    /** The key of `metadata` by whose values submissions are grouped; null: none. */
    metadataKey: string | null;
    /** By upstream. */
    objectives: ReadonlyMap<string, Objective>;
  };
}) {
  let pruneAt = Number.NEGATIVE_INFINITY;
  function* count(): Generator<void> {
    const { metadataKey } = settings;
    const step = { metadataKey, limit: HISTORY_PER_STEP };
    while (reports.count({ ...step, now: clock.now() })) yield;
    if (clock.now() < pruneAt) return;
    pruneAt = clock.now() + PRUNE_MS;
    while (reports.prune(clock.now(), REPORT_ROWS_PER_STEP)) yield;
    for (const upstream of settings.objectives.keys())
      while (objectives.prune(upstream, clock.now(), REPORT_ROWS_PER_STEP)) yield;
  }
  function* judge(): Generator<void> {
    for (const [upstream, objective] of settings.objectives) {
      const step = { upstream, objective, limit: OBJECTIVES_PER_STEP };
      while (objectives.count({ ...step, now: clock.now() })) yield;
    }
  }
  const times = [...settings.objectives.values()].map(({ withinMs }) => withinMs + COUNT_MS);
  return {
    tasks: [count, judge],
    countedThrough: () => reports.countedThrough(),
    // If those that ended in time were deleted before they are judged, the others alone would spend
    // the error budget.
    minAgeMs: Math.max(0, ...times),
  };
}

/** Returns the service level objectives by upstream. */
function objectivesOf({ slo, upstreams }: Config): Map<string, Objective> {
  const objectives = Object.entries(upstreams)
    .filter(([, { url }]) => url !== undefined)
    .map(([name, { slo: own }]): [string, Objective] => [
      name,
      {
        target: (own.target_percent ?? slo.target_percent) / 100,
        withinMs: (own.within_s ?? slo.within_s) * 1_000,
      },
    ]);
  return new Map(objectives.filter(([, { target }]) => target > 0));
}
