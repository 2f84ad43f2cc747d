import { Gauge, type Registry } from 'prom-client';
import { STATUSES } from '../../domain/submission.ts';
import { BreakerState } from '../../domain/upstream-health.ts';
import type { Health, Overview } from '../ports.ts';

export type GaugeValues = {
  now: number;
  /** Undefined: the ledger could not be read. */
  overview: Overview | undefined;
  health: Health;
  ledgerBytes: { database: number; wal: number };
  readers: number;
  waitingIds: number;
};

/** How things stand, as /v1/overview says it. Gives back what brings the gauges up to date; what is not known has no sample. */
export function createGauges(registry: Registry, version: string): (standing: GaugeValues) => void {
  const gauge = <T extends string = never>(name: string, help: string, ...labelNames: T[]) =>
    new Gauge({ name: `dawatch_${name}`, help, labelNames, registers: [registry] });

  gauge('build_info', 'Always 1; the version is its label', 'version').set({ version }, 1);
  const submissions = gauge('submissions', 'Submissions in the ledger, by status', 'status');
  const oldest = gauge(
    'oldest_open_submission_age_seconds',
    'For how long the oldest open submission has been tracked; 0: none is',
  );
  const state = gauge(
    'upstream_state',
    '1 at the state that the upstream is in. closed: it answers; down: it does not; unauthorized: it refuses the key',
    'upstream',
    'state',
  );
  const waiting = gauge(
    'deliveries_waiting',
    'Deliveries that wait in the ledger, for their first attempt or the next',
  );
  const waitingAge = gauge(
    'deliveries_oldest_waiting_age_seconds',
    'For how long the oldest delivery that waits has waited; 0: none does',
  );
  const dead = gauge('deliveries_dead', 'Dead letters: deliveries that were given up, and can be replayed');
  const feedReaders = gauge('feed_readers', 'Readers of the live feed');
  const waitingIds = gauge('tracking_waiting_ids', 'Ids of tracking requests that wait for the ledger');
  const writable = gauge('ledger_writable', '1: the ledger can be written; 0: nothing new is taken');
  const databaseBytes = gauge('ledger_size_bytes', 'The size of the database file');
  const walBytes = gauge('ledger_wal_size_bytes', 'The size of the write-ahead log beside the database file');
  const redisUp = gauge(
    'redis_up',
    '1: Redis answers; 0: it does not, and this server asks alone; none: there is no Redis',
  );
  const workers = gauge('workers', 'Workers that are alive; none: there is no Redis');

  const refused = gauge(
    'workers_refused',
    'Workers that announce themselves and get no jobs: their version or redis.secret does not fit; none: there is no Redis',
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
