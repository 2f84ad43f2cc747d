import { Gauge, type Registry } from 'prom-client';
import { STATUSES } from '../../domain/submission.ts';
import { BreakerState } from '../../domain/upstream-health.ts';
import type { Readiness } from '../ports.ts';
import type { Overview } from '../services.ts';

export type GaugeValues = {
  now: number;
  /** Undefined if the ledger could not be read. */
  overview: Overview | undefined;
  health: Readiness;
  ledgerBytes: { database: number; wal: number };
  readers: number;
  waitingIds: number;
};

/** Creates the gauges and returns the function that sets them. Unknown values have no sample. */
export function createGauges(registry: Registry, version: string): (values: GaugeValues) => void {
  const gauge = <T extends string = never>(name: string, help: string, ...labelNames: T[]) =>
    new Gauge({ name: `dawatch_${name}`, help, labelNames, registers: [registry] });

  gauge('build_info', 'Always 1; the version is its label', 'version').set({ version }, 1);
  const submissions = gauge('submissions', 'Submissions in the ledger, by status', 'status');
  const oldest = gauge(
    'oldest_open_submission_age_seconds',
    'Time since the oldest open submission was tracked; 0 without open submissions',
  );
  const state = gauge(
    'upstream_state',
    '1 for the current state of the upstream. closed: it responds; down: it does not; unauthorized: it refuses the key',
    'upstream',
    'state',
  );
  const waiting = gauge('deliveries_waiting', 'Deliveries waiting for their first or next attempt');
  const waitingAge = gauge(
    'deliveries_oldest_waiting_age_seconds',
    'Time for which the oldest waiting delivery has waited; 0 if none waits',
  );
  const dead = gauge('deliveries_dead', 'Dead letters in the ledger, which can be replayed');
  const feedReaders = gauge('feed_readers', 'Readers of the live feed');
  const waitingIds = gauge('tracking_waiting_ids', 'Ids of tracking requests that are waiting for the ledger');
  const writable = gauge('ledger_writable', '1: the ledger is writable; 0: new submissions are refused');
  const databaseBytes = gauge('ledger_size_bytes', 'Size of the database file');
  const walBytes = gauge('ledger_wal_size_bytes', 'Size of the write-ahead log');
  const redisUp = gauge(
    'redis_up',
    '1: Redis responds; 0: it does not, and this server polls alone; no sample without Redis',
  );
  const workers = gauge('workers', 'Live workers; no sample without Redis');

  const refused = gauge(
    'workers_refused',
    'Workers that get no jobs because their version or redis.secret does not match; no sample without Redis',
  );

  return ({ now, overview, health, ledgerBytes, readers, waitingIds: ids }) => {
    for (const one of [oldest, waiting, waitingAge, dead, redisUp, workers, refused]) one.remove();
    submissions.reset();
    state.reset();
    for (const { upstream, state: current } of health.upstreams)
      for (const name of Object.values(BreakerState)) state.set({ upstream, state: name }, Number(name === current));
    writable.set(Number(health.ledgerWritable));
    databaseBytes.set(ledgerBytes.database);
    walBytes.set(ledgerBytes.wal);
    feedReaders.set(readers);
    waitingIds.set(ids);
    if (health.redis) {
      redisUp.set(Number(health.redis.state === 'up'));
      workers.set(health.redis.workers.length);
      refused.set(health.redis.refusedWorkers);
    }
    if (!overview) return;
    const { deliveries, oldestOpen } = overview;
    const ageOf = (since: number | null | undefined) => Math.max(0, now - (since ?? now)) / 1_000;
    for (const status of STATUSES) submissions.set({ status }, overview.submissions[status]);
    oldest.set(ageOf(oldestOpen[0]?.trackedAt));
    waiting.set(deliveries.waiting);
    waitingAge.set(ageOf(deliveries.oldestWaitingAt));
    dead.set(deliveries.dead);
  };
}
