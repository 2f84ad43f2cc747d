import { Gauge, type Registry } from 'prom-client';
import { STATUSES } from '../../submissions/submission.ts';
import { BreakerState } from '../../submissions/upstream.ts';
import type { Readiness } from '../health-routes.ts';
import type { LedgerCounts } from '../ledger-stats.ts';

export type GaugeValues = {
  now: number;
  /** Undefined if the ledger could not be read. */
  counts: LedgerCounts | undefined;
  health: Readiness;
  ledgerBytes: { database: number; wal: number };
  readers: number;
  waitingIds: number;
};

/**
 * The help text and the reading of each gauge without labels; a reading of undefined means no
 * sample.
 */
const GAUGES: Record<
  string,
  readonly [help: string, of: (values: GaugeValues) => number | undefined]
> = {
  oldest_open_submission_age_seconds: [
    'Time since the oldest open submission was tracked; 0 without open submissions',
    ({ now, counts }) => counts && ageS(now, counts.oldestOpen[0]?.trackedAt),
  ],
  deliveries_waiting: [
    'Deliveries waiting for their first or next attempt',
    ({ counts }) => counts?.deliveries.waiting,
  ],
  deliveries_oldest_waiting_age_seconds: [
    'Time for which the oldest waiting delivery has waited; 0 if none waits',
    ({ now, counts }) => counts && ageS(now, counts.deliveries.oldestWaitingAt),
  ],
  deliveries_dead: [
    'Dead letters in the ledger, which can be replayed',
    ({ counts }) => counts?.deliveries.dead,
  ],
  feed_readers: ['Readers of the live feed', ({ readers }) => readers],
  tracking_waiting_ids: [
    'Ids of tracking requests that are waiting for the ledger or its disk',
    ({ waitingIds }) => waitingIds,
  ],
  ledger_writable: [
    '1: the ledger is writable; 0: new submissions are refused',
    ({ health }) => Number(health.ledgerWritable),
  ],
  ledger_size_bytes: ['Size of the database file', ({ ledgerBytes }) => ledgerBytes.database],
  ledger_wal_size_bytes: ['Size of the write-ahead log', ({ ledgerBytes }) => ledgerBytes.wal],
  redis_up: [
    '1: Redis responds; 0: it does not, and this server polls alone; no sample without Redis',
    ({ health: { redis } }) => redis && Number(redis.state === 'up'),
  ],
  workers: ['Live workers; no sample without Redis', ({ health }) => health.redis?.workers.length],
  workers_refused: [
    'Workers that get no jobs because their version or redis.secret does not match; no sample without Redis',
    ({ health }) => health.redis?.refusedWorkers,
  ],
};

/** Creates the gauges and returns the function that sets them. */
export function createGauges(registry: Registry, version: string): (values: GaugeValues) => void {
  const create = <T extends string = never>(name: string, help: string, ...labelNames: T[]) =>
    new Gauge({ name: `dawatch_${name}`, help, labelNames, registers: [registry] });
  create('build_info', 'Always 1; the version is its label', 'version').set({ version }, 1);
  const submissions = create('submissions', 'Submissions in the ledger, by status', 'status');
  const state = create(
    'upstream_state',
    '1 for the current state of the upstream. closed: it responds; down: it does not; unauthorized: it refuses the key',
    'upstream',
    'state',
  );
  const others = Object.entries(GAUGES).map(([name, [help, of]]) => ({
    gauge: create(name, help),
    of,
  }));

  return (values) => {
    const { counts, health } = values;
    submissions.reset();
    state.reset();
    if (counts)
      for (const status of STATUSES) submissions.set({ status }, counts.submissions[status]);
    for (const { upstream, state: current } of health.upstreams)
      for (const name of Object.values(BreakerState))
        state.set({ upstream, state: name }, Number(name === current));
    for (const { gauge, of } of others) {
      const value = of(values);
      if (value === undefined) gauge.remove();
      else gauge.set(value);
    }
  };
}

function ageS(now: number, since: number | null | undefined): number {
  return Math.max(0, now - (since ?? now)) / 1_000;
}
