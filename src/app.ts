import type { FastifyBaseLogger } from 'fastify';
import pkg from '../package.json' with { type: 'json' };
import type { Config } from './config/schema.ts';
import { StartError } from './config/start-error.ts';
import { dashboardAssets } from './dashboard/assets.ts';
import type { Clock } from './domain/clock.ts';
import { createLocalEngine } from './engines/local.ts';
import { credentialsOf, ensureCredential, hasTokenForm, isOwnToken } from './http/access/credentials.ts';
import { createMetrics } from './http/metrics/metrics.ts';
import { buildServer } from './http/server.ts';
import { Ledger } from './ledger/ledger.ts';
import { logMonitor } from './logging/listeners.ts';
import type { Log } from './logging/logger.ts';
import { learnedPacing } from './pacing/policy/policy.ts';
import type { PolicyFactory } from './pacing/policy.ts';
import type { PacerSettings } from './pacing/scheduler.ts';
import { CachedLookup } from './watch/cached-lookup.ts';
import type { WatcherListener } from './watch/listeners.ts';
import { ON_DEMAND_WAIT_MS } from './watch/poll-loop.ts';
import type { RecordedObservation } from './watch/ports.ts';
import { Watcher } from './watch/watcher.ts';
import { auditOf, errorToProblem, submissionsOf, usersOf } from './wiring/http.ts';
import { overviewOf, startLiveStats } from './wiring/live-stats.ts';
import { startNotifications } from './wiring/notifications.ts';
import type { startScaling as StartScaling } from './wiring/scaling.ts';
import { reportUnreadable } from './wiring/unreadable.ts';
import { startUpkeep } from './wiring/upkeep.ts';
import {
  clientOf,
  createClient,
  createUserPool,
  leaseMsOf,
  type UsableUpstream,
  usableUpstreams,
} from './wiring/upstreams.ts';

export type App = {
  /** Where it listens. */
  url: string;
  /** Takes nothing new, lets what is under way end (bounded by server.shutdown_s), and closes everything. Idempotent. */
  close(): Promise<void>;
};

export type AppDeps = {
  config: Config;
  log: Log;
  clock: Clock;
  random: () => number;
  /** Told the service key that was made because none was configured; it is kept nowhere in the clear. */
  onNewKey: (key: string) => void;
  /** Hears everything the monitor commits, as the log does. */
  listener?: WatcherListener;
  /** When to poll; by the learned distribution of finality time unless given. */
  policy?: (settings: { lagPrice: number }) => PolicyFactory;
};

/**
 * The only wiring. What is opened last is closed first; if opening fails midway, what was opened is closed again.
 * Throws StartError, LedgerError, or what listening throws.
 */
export async function startApp(deps: AppDeps): Promise<App> {
  const { config, log, clock, random } = deps;
  const upstreams = usableUpstreams(config);
  const opened: (() => unknown)[] = [];
  let closeBy = Number.POSITIVE_INFINITY;
  const leftMs = () => Math.max(0, closeBy - clock.now());
  const closeAll = async () => {
    closeBy = clock.now() + config.server.shutdown_s * 1_000;
    for (const close of opened.splice(0).reverse()) await close();
  };
  try {
    const ledger = new Ledger({ file: config.database, now: clock.now() });
    opened.push(() => ledger.close());
    if (ledger.tightened.length > 0) log.warn({ files: ledger.tightened }, 'ledger.permissions_tightened');
    const { auth, server: listening } = config;
    const first = ensureCredential({ auth, host: listening.host, store: ledger.credentials, now: clock.now() });
    if (first.kind === 'refused') throw new StartError(first.reason);
    if (first.kind === 'made') deps.onNewKey(first.key);
    const credentials = credentialsOf(auth, ledger.credentials, () => clock.now());

    const metrics = createMetrics({ version: pkg.version });
    const { counters } = metrics;
    const onUnreadable = reportUnreadable({ log, counters });
    ledger.onUnreadable(onUnreadable);
    const notifications = await startNotifications({
      config,
      ledger,
      upstreams: upstreams.map(([name]) => name),
      clock,
      random,
      log,
      version: pkg.version,
      counters,
      onUnreadable,
    });
    opened.push(() => notifications.stop(leftMs()));
    const upkeep = startUpkeep({ config, ledger, clock, log });
    opened.push(() => upkeep.stop());

    const clients = new Map(upstreams.map(([name, upstream]) => [name, createClient(upstream, clock)]));
    opened.push(() => Promise.all([...clients.values()].map((client) => client.close())));
    const userPool = createUserPool(config.upstreams.default, clock);
    opened.push(() => userPool?.close());
    const local = createLocalEngine({
      clock,
      sendPoll: (upstream, id) => clientOf(clients, upstream).getSubmissionInfo(id),
    });
    const scaling = await startScaling({ config, upstreams, ledger, local, clock, log, counters });
    opened.push(() => scaling?.close());

    const tally = startLiveStats({ ledger, clock, counters });
    const lookup: CachedLookup = new CachedLookup({
      get: (id) => ledger.get(id),
      pollOnDemand: (upstream, id, client) => monitor.pollOnDemand(upstream, id, client),
      now: () => clock.now(),
      maxAgeMs: config.facade.max_age_s * 1_000,
    });
    const remember = { recorded: ({ observation }: RecordedObservation) => lookup.add(observation) };
    const listeners = [logMonitor(log), remember, tally.listener, deps.listener ?? {}];
    const monitor = new Watcher({
      settings: monitorSettings(config, upstreams, deps.policy ?? learnedPacing),
      ledger,
      engine: tally.counting(scaling?.engine ?? local),
      clock,
      random,
      listeners,
    });
    let isStopping = false;
    opened.push(() => {
      isStopping = true;
      return monitor.stop(leftMs());
    });
    warnOfOrphans(ledger, monitor, log);

    const submissions = submissionsOf({ config, ledger, monitor, clock, refusalOf: notifications.refusalOf });
    const intake = scaling?.startIntake((body) => submissions.track(body));
    opened.push(() => intake?.close(leftMs()));

    const server = await buildServer({
      submissions,
      submissionInfo: {
        hasUpstream: (name) => monitor.hasUpstream(name),
        lookUp: (id, upstream, client) => lookup.lookUp(id, upstream, client),
      },
      users: usersOf(config, userPool),
      audit: auditOf(ledger, clock),
      isOwnToken,
      hasTokenForm,
      events: ledger.outbox,
      webhooks: notifications.webhooks,
      deliveries: notifications.deliveries,
      clock,
      health: () => ({ ...monitor.health(), redis: scaling?.health() }),
      pacing: () => monitor.pacing(),
      overview: () => overviewOf({ ledger, monitor, tally, clock, scaling }),
      metrics,
      ledgerBytes: () => ledger.stats.bytes(),
      queues: scaling?.queues,
      dashboard: dashboardAssets(),
      credentials,
      errorToProblem,
      onUnreadable,
      log: log as unknown as FastifyBaseLogger,
      version: pkg.version,
      limits: {
        requestsPerMinute: config.limits.requests_per_minute,
        failedAuthenticationsPerMinute: config.limits.failed_authentications_per_minute,
        maxWaitMs: config.limits.tracking_wait_s * 1_000,
        maxHeldOpen: config.limits.held_open,
        receiveBytesPerS: config.limits.receive_bytes_per_s,
      },
      timeoutMs: config.server.timeout_s * 1_000,
      responseDeadlineMs: responseDeadlineMs(config, upstreams),
      corsOrigins: config.server.cors_origins,
      trustedProxies: config.server.trusted_proxies,
    });
    opened.push(async () => {
      await within(leftMs(), server.close());
      // Whoever has sent half a request by now will not send the rest: the process must not wait for it.
      server.server.closeAllConnections();
    });
    const url = await server.listen({
      host: config.server.host,
      port: config.server.port,
      listenTextResolver: () => 'http.listening',
    });
    // Whoever can't listen has asked nobody.
    if (scaling) void scaling.previousPollsEnded.then(() => isStopping || monitor.start());
    else monitor.start();
    log.info(
      { url, database: config.database, upstreams: [...clients.keys()], version: pkg.version },
      'server.started',
    );

    let closing: Promise<void> | undefined;
    return {
      url,
      close() {
        closing ??= closeAll().then(() => log.info('server.stopped'));
        return closing;
      },
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

function monitorSettings(
  config: Config,
  upstreams: [string, UsableUpstream][],
  policy: NonNullable<AppDeps['policy']>,
) {
  const { pacing, breaker, submissions } = config;
  const lagPrices = new Map(upstreams.map(([name, { lag_price }]) => [name, lag_price ?? pacing.lag_price]));
  const pacerOf = (upstream: UsableUpstream): PacerSettings => ({
    budget: {
      requests: upstream.budget.requests,
      perMs: upstream.budget.per_s * 1_000,
      concurrency: upstream.budget.concurrency,
    },
    breaker: {
      failures: breaker.failures,
      probeMs: breaker.probe_after_s * 1_000,
      maxProbeMs: breaker.max_probe_s * 1_000,
    },
    leaseMs: leaseMsOf(upstream),
    recheckMs: submissions.recheck_after_s * 1_000,
  });
  return {
    pacers: new Map(upstreams.map(([name, upstream]) => [name, pacerOf(upstream)])),
    policy: (upstream: string) => policy({ lagPrice: lagPrices.get(upstream) ?? pacing.lag_price }),
    recheck: submissions.recheck_after_s > 0,
  };
}

/** Longer than what any request may wait for: its own body, the ledger, a place in the request budget, and the upstream. */
function responseDeadlineMs({ server, limits }: Config, upstreams: [string, UsableUpstream][]): number {
  const longestLeaseMs = Math.max(...upstreams.map(([, upstream]) => leaseMsOf(upstream)));
  return (server.timeout_s + limits.tracking_wait_s) * 1_000 + ON_DEMAND_WAIT_MS + longestLeaseMs;
}

/** Undefined: there is no Redis, and this process does everything itself. */
async function startScaling({
  config,
  ...deps
}: { config: Config } & Omit<Parameters<typeof StartScaling>[0], 'redis'>) {
  const { url } = config.redis;
  if (url === undefined) return undefined;
  // What comes with a Redis would make every start slower, also where there is none.
  const { startScaling: start } = await import('./wiring/scaling.ts');
  return start({ redis: { ...config.redis, url }, ...deps });
}

/** Submissions of an upstream that is no longer configured are kept, but nobody asks about them. */
function warnOfOrphans(ledger: Ledger, monitor: Watcher, log: Log): void {
  for (const [upstream, submissions] of ledger.watchedCounts())
    if (!monitor.hasUpstream(upstream)) log.warn({ upstream, submissions }, 'upstream.not_configured');
}

/** Waits for `work`, but not for ever: what comes after must be closed too. */
async function within(ms: number, work: PromiseLike<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, limit]);
  clearTimeout(timer);
}
