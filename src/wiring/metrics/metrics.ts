import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { z } from 'zod';
import { operations } from '../../http/problems.ts';
import type { TypedServer } from '../../http/typed-server.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Receiver, Receivers } from '../../notifications/receivers-store.ts';
import { chainState } from '../../polling/chain/chain-body.ts';
import { NODE_STATES } from '../../polling/chain/port.ts';
import type { UpstreamPacing, Watcher } from '../../polling/watcher.ts';
import type { LedgerCounts, LedgerStats } from '../../submissions/ledger-stats.ts';
import { STATUSES } from '../../submissions/submission.ts';
import { UPSTREAM_STATES } from '../../submissions/upstream.ts';
import type { Readiness } from '../health-routes.ts';
import { createCounters } from './counters.ts';

/** Prometheus warns about these gauges. The families without `_total` have the same data. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];

export type Metrics = ReturnType<typeof createMetrics>;

export type Scraped = GaugeValues & {
  pacing: readonly UpstreamPacing[];
  receivers: readonly Receiver[];
};

/** Creates the metrics of one server. A process can have several servers. */
export function createMetrics({ version }: { version: string }) {
  const registry = new Registry();
  const counters = createCounters(registry);
  const setGauges = createGauges(registry, version);
  const setUpstreamGauges = createGaugesBy(registry, 'upstream', UPSTREAM_GAUGES);
  const setReceiverGauges = createGaugesBy(registry, 'destination', RECEIVER_GAUGES);
  const setChainMetrics = createChainMetrics(registry);
  let isCollecting = false;
  /** Starts at the first scrape, because the metrics of the process cost timers and observers. */
  const collectProcess = () => {
    if (isCollecting) return;
    isCollecting = true;
    collectDefaultMetrics({ register: registry });
    for (const name of MISNAMED) registry.removeSingleMetric(name);
  };
  return {
    counters,
    /** Sets the gauges. Synchronous, so that concurrent scrapes do not mix their values. */
    set({ pacing, receivers, ...values }: Scraped) {
      setGauges(values);
      setChainMetrics(values);
      const { now } = values;
      setUpstreamGauges(
        pacing.map((one) => [one.upstream, one]),
        now,
      );
      setReceiverGauges(
        receivers.map((one) => [one.destination, one]),
        now,
      );
    },
    async text() {
      collectProcess();
      return { contentType: registry.contentType, text: withoutEmptyLag(await registry.metrics()) };
    },
    async describe() {
      collectProcess();
      return registry.getMetricsAsArray().map((metric) => {
        const { name, help, type, labelNames } = metric as typeof metric & {
          labelNames?: readonly string[];
        };
        return { name, help, type: String(type), labels: labelNames ?? [] };
      });
    },
  };
}

const EMPTY_LAG = /^nodejs_eventloop_lag_mean_seconds NaN$/im;
const LAG_SAMPLES = /^nodejs_eventloop_lag_(?:min|max|mean|stddev|p50|p90|p99)_seconds .*\n/gm;

/** None was measured at the first scrape and directly after another one. */
function withoutEmptyLag(text: string): string {
  return EMPTY_LAG.test(text) ? text.replace(LAG_SAMPLES, '') : text;
}

export type GaugeValues = {
  now: number;
  /** Undefined if the ledger could not be read. */
  counts: LedgerCounts | undefined;
  health: Readiness;
  ledgerBytes: { database: number; wal: number };
  disk: { freeBytes: number; sizeBytes: number } | undefined;
};

/** A reading of undefined means no sample. */
const GAUGES: Record<
  string,
  readonly [help: string, of: (values: GaugeValues) => number | undefined]
> = {
  oldest_open_submission_age_seconds: [
    'Age of the oldest open submission, or 0',
    ({ now, counts }) => counts && ageS(now, counts.oldestOpenAt),
  ],
  deliveries_dead: ['Dead letters that can be replayed', ({ counts }) => counts?.deliveries.dead],
  ledger_writable: [
    '1, or 0: new submissions are refused',
    ({ health }) => Number(health.ledgerWritable),
  ],
  ledger_size_bytes: ['Size of the database file', ({ ledgerBytes }) => ledgerBytes.database],
  ledger_wal_size_bytes: ['Size of the write-ahead log', ({ ledgerBytes }) => ledgerBytes.wal],
  ledger_disk_free_bytes: ['Free space on the disk of the ledger', ({ disk }) => disk?.freeBytes],
  ledger_disk_size_bytes: ['Size of the disk of the ledger', ({ disk }) => disk?.sizeBytes],
  redis_up: [
    '1, or 0: Redis does not respond, and this server polls alone',
    ({ health: { redis } }) => redis && Number(redis.state === 'up'),
  ],
  workers: ['Live workers', ({ health }) => health.redis?.workers.length],
};

function createGauges(registry: Registry, version: string): (values: GaugeValues) => void {
  const create = <T extends string = never>(name: string, help: string, ...labelNames: T[]) =>
    new Gauge({ name: `dawatch_${name}`, help, labelNames, registers: [registry] });
  create('build_info', 'Always 1; the version is its label', 'version').set({ version }, 1);
  const submissions = create('submissions', 'Submissions in the ledger', 'status');
  const state = create(
    'upstream_state',
    '1 for the current state: up, down, unauthorized (the key is refused) or paused (429 or Retry-After of more than 30 s)',
    'upstream',
    'state',
  );
  const dropped = new Counter({
    name: 'dawatch_log_lines_dropped_total',
    help: 'Log lines lost to a full disk or a pipe without reader',
    registers: [registry],
  });
  const others = Object.entries(GAUGES).map(([name, [help, of]]) => ({
    gauge: create(name, help),
    of,
  }));

  return (values) => {
    const { counts, health } = values;
    submissions.reset();
    state.reset();
    dropped.reset();
    dropped.inc(health.logLinesDropped);
    if (counts)
      for (const status of STATUSES) submissions.set({ status }, counts.submissions[status]);
    for (const { upstream, state: current } of health.upstreams)
      for (const name of UPSTREAM_STATES)
        state.set({ upstream, state: name }, Number(name === current));
    for (const { gauge, of } of others) {
      const value = of(values);
      if (value === undefined) gauge.remove();
      else gauge.set(value);
    }
  };
}

/** The help text and the reading of each gauge. */
type LabelledGauges<T> = Record<
  string,
  readonly [help: string, of: (one: T, now: number) => number]
>;

const UPSTREAM_GAUGES: LabelledGauges<UpstreamPacing> = {
  pacing_tracked_submissions: ['Submissions being polled', ({ tracked }) => tracked],
  pacing_budget_requests: ['Requests per window of the budget', ({ budget }) => budget.requests],
  pacing_budget_used_requests: ['Requests used in the current window', ({ budget }) => budget.used],
  pacing_next_request_delayed: [
    '1: the budget or a pause delays the next poll',
    ({ isDelayed }) => Number(isDelayed),
  ],
};

const RECEIVER_GAUGES: LabelledGauges<Receiver> = {
  deliveries_waiting: ['Deliveries waiting for an attempt', ({ waiting }) => waiting],
  deliveries_oldest_waiting_age_seconds: [
    'Age of the oldest waiting delivery, or 0',
    ({ oldestWaitingAt }, now) => ageS(now, oldestWaitingAt),
  ],
  receiver_failing_seconds: [
    'Time for which all attempts have failed, or 0',
    ({ failingSince }, now) => ageS(now, failingSince),
  ],
};

function createGaugesBy<T>(
  registry: Registry,
  label: string,
  gauges: LabelledGauges<T>,
): (values: readonly (readonly [label: string, of: T])[], now: number) => void {
  const created = Object.entries(gauges).map(([name, [help, of]]) => ({
    of,
    gauge: new Gauge({ name: `dawatch_${name}`, help, labelNames: [label], registers: [registry] }),
  }));
  return (values, now) => {
    for (const { gauge, of } of created) {
      gauge.reset();
      for (const [name, one] of values) gauge.set({ [label]: name }, of(one, now));
    }
  };
}

function createChainMetrics(registry: Registry): (values: GaugeValues) => void {
  const create = <T extends string = never>(name: string, help: string, ...labels: T[]) =>
    new Gauge({
      name: `dawatch_chain_${name}`,
      help,
      labelNames: ['upstream', ...labels],
      registers: [registry],
    });
  const connected = create('connected', '1: a node announces finalized blocks; 0: none does');
  const nodeState = create(
    'node_state',
    '1 for the current state: used, connecting, disconnected; not trusted: another_chain, early, behind, another_block',
    'node',
    'state',
  );
  const age = create(
    'finalized_block_age_seconds',
    'Time since the newest announced finalized block',
  );
  return ({ now, health }) => {
    for (const gauge of [connected, nodeState, age]) gauge.reset();
    for (const { upstream, chain } of health.upstreams) {
      if (!chain) continue;
      connected.set({ upstream }, Number(chainState(chain) === 'connected'));
      for (const { host: node, state } of chain.nodes)
        for (const name of NODE_STATES)
          nodeState.set({ upstream, node, state: name }, Number(name === state));
      if (chain.head) age.set({ upstream }, ageS(now, chain.head.at));
    }
  };
}

function ageS(now: number, since: number | null | undefined): number {
  return Math.max(0, now - (since ?? now)) / 1_000;
}

/** Requests within this time get the same text: the route is open and unlimited. */
const MAX_AGE_MS = 1_000;

const metricsSchema = z
  .string()
  .describe('The text format of Prometheus, 0.0.4')
  .meta({
    examples: [
      '# HELP dawatch_pacing_tracked_submissions Submissions being polled\n# TYPE dawatch_pacing_tracked_submissions gauge\ndawatch_pacing_tracked_submissions{upstream="default"} 150\n',
    ],
  });

const OPERATIONS = operations('operations', {
  getMetrics: {
    summary: 'Get the metrics for Prometheus',
    description: 'Needs no credential.',
    security: [],
    response: {
      200: {
        description:
          'Current gauges, and counters and histograms since the server started; computed at most once a second',
        content: { 'text/plain': { schema: metricsSchema } },
      },
    },
  },
});

export function registerMetrics(
  app: TypedServer,
  deps: {
    metrics: Metrics;
    watcher: Watcher;
    health: () => Readiness;
    ledger: { stats: LedgerStats; receivers: Receivers };
    clock: Clock;
  },
): void {
  /** Returns undefined if the ledger cannot be read; the other metrics are still served. */
  const readable = <T>(read: () => T): T | undefined => {
    try {
      return read();
    } catch (error) {
      app.log.error({ err: error }, 'metrics.incomplete');
      return undefined;
    }
  };
  const scrape = async (now: number) => {
    const { metrics, ledger, watcher } = deps;
    metrics.set({
      now,
      counts: readable(() => ledger.stats.counts()),
      receivers: readable(() => ledger.receivers.list(now)) ?? [],
      pacing: watcher.pacing(),
      ledgerBytes: ledger.stats.bytes(),
      disk: ledger.stats.disk(),
      health: deps.health(),
    });
    const { contentType, text } = await metrics.text();
    return { contentType, body: Buffer.from(text) };
  };
  let last: { at: number; text: ReturnType<typeof scrape> } | undefined;
  app.get('/metrics', { schema: OPERATIONS.getMetrics }, async (_request, reply) => {
    const now = deps.clock.now();
    if (!last || now - last.at >= MAX_AGE_MS) {
      const text = scrape(now);
      last = { at: now, text };
      text.catch(() => {
        if (last?.text === text) last = undefined;
      });
    }
    const { contentType, body } = await last.text;
    return reply.type(contentType).send(body as never);
  });
}
