import type { FastifyBaseLogger } from 'fastify';
import type { ReloadResult } from './config/reload.ts';
import type { Config } from './config/schema.ts';
import { StartError } from './config/start-error.ts';
import type { Actor } from './domain/audit/actions.ts';
import type { Clock } from './domain/clock.ts';
import { createLocalEngine } from './engines/local.ts';
import { credentialsOf, ensureCredential } from './http/access/credentials.ts';
import { createMetrics } from './http/metrics/metrics.ts';
import { buildServer } from './http/server.ts';
import { refuseOwnBearer, trackerOf, usersOf } from './http/services.ts';
import type { Ledger } from './ledger/ledger.ts';
import { logMonitor } from './logging/listeners.ts';
import type { Log } from './logging/logger.ts';
import { learnedPacing } from './pacing/policy/policy.ts';
import type { PolicyFactory } from './pacing/policy.ts';
import type { SchedulerSettings } from './pacing/scheduler.ts';
import type { TracerSettings } from './platform/tracing/tracer.ts';
import { VERSION } from './platform/version.ts';
import { withTimeout } from './platform/with-timeout.ts';
import { CachedLookup } from './watch/cached-lookup.ts';
import type { WatcherListener } from './watch/listeners.ts';
import { ON_DEMAND_WAIT_MS } from './watch/poll-loop.ts';
import type { RecordedObservation } from './watch/ports.ts';
import { Watcher } from './watch/watcher.ts';
import { openLedger, startMaintenance } from './wiring/ledger.ts';
import { startLiveStats } from './wiring/live-stats.ts';
import { startNotifications } from './wiring/notifications.ts';
import { auditReload, SettingsReload, type SettingsSource } from './wiring/reload.ts';
import type { startScaling as StartScaling } from './wiring/scaling.ts';
import { startTracing } from './wiring/start-tracing.ts';
import {
  budgetOf,
  createClient,
  createSubmitters,
  createUserPool,
  leaseMsOf,
  type UsableUpstream,
  upstreamClientFor,
  usableUpstreams,
} from './wiring/upstreams.ts';

export type App = {
  /** Base URL of the server. */
  url: string;
  /** Applies changed settings, all or none. Rejects if the result cannot be audited; then nothing was applied. */
  reload(actor: Actor): Promise<ReloadResult>;
  /** Stops accepting requests, completes those in flight within server.shutdown_s, and closes everything. Idempotent. */
  close(): Promise<void>;
};

export type AppDeps = {
  config: Config;
  /** Default: tracing is off. */
  tracing?: TracerSettings | undefined;
  /** Default: the settings never change. */
  settings?: SettingsSource;
  log: Log;
  clock: Clock;
  random: () => number;
  /** Receives the service key that is generated if none is configured. It is stored only as a hash. */
  onNewKey: (key: string) => void;
  /** Receives everything the watcher commits, like the log. */
  listener?: WatcherListener;
  /** When to poll. Default: by the learned distribution of finality times. */
  policy?: (settings: { lagPrice: number }) => PolicyFactory;
};

/**
 * Starts all modules and connects them. They are closed in reverse order, also if starting fails midway.
 * Throws StartError, LedgerError, or an error of listening.
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
    const metrics = createMetrics({ version: VERSION });
    const { counters } = metrics;
    const { ledger, onUnreadable } = openLedger({ config, clock, log, counters });
    opened.push(() => ledger.close());
    const first = ensureCredential({ config, ledger, now: clock.now() });
    if (first.kind === 'refused') throw new StartError(first.reason);
    if (first.kind === 'made') deps.onNewKey(first.key);
    let credentials = credentialsOf(config.auth, ledger.credentials, clock);

    const traces = await startTracing(deps.tracing, { ledger, clock, log, version: VERSION });
    opened.push(() => traces?.tracer.close(leftMs()));
    const notifications = await startNotifications({
      config,
      ledger,
      upstreams: upstreams.map(([name]) => name),
      clock,
      random,
      log,
      version: VERSION,
      counters,
      onUnreadable,
      trace: traces?.delivery,
    });
    opened.push(() => notifications.stop(leftMs()));
    const maintenance = startMaintenance({ config, ledger, clock, log });
    opened.push(() => maintenance.stop());

    const clients = new Map(upstreams.map(([name, upstream]) => [name, createClient(upstream, clock)]));
    opened.push(() => Promise.all([...clients.values()].map((client) => client.close())));
    const userPool = createUserPool(config.upstreams.default, clock);
    opened.push(() => userPool?.close());
    const submitters = createSubmitters(upstreams, clock);
    opened.push(() => Promise.all([...submitters.values()].map(({ submitter }) => submitter.close())));
    const local = createLocalEngine({
      clock,
      sendPoll: (upstream, id) => upstreamClientFor(clients, upstream).getSubmissionInfo(id),
    });
    const scaling = await startScaling({ config, upstreams, ledger, local, clock, log, counters });
    opened.push(() => scaling?.close());

    const stats = startLiveStats({ ledger, clock, counters });
    const lookup: CachedLookup = new CachedLookup({
      get: (id) => ledger.submissions.get(id),
      pollOnDemand: (upstream, id, client) => watcher.pollOnDemand(upstream, id, client),
      now: () => clock.now(),
      maxAgeMs: config.facade.max_age_s * 1_000,
    });
    const addToLookup = { recorded: ({ observation }: RecordedObservation) => lookup.add(observation) };
    const listeners = [logMonitor(log), addToLookup, stats.listener, deps.listener ?? {}];
    if (traces) listeners.push(traces.listener);
    const watcher = new Watcher({
      settings: watcherSettings(config, upstreams, deps.policy ?? learnedPacing),
      ledger,
      engine: stats.counting(scaling?.engine ?? local),
      clock,
      random,
      listeners,
    });
    let isStopping = false;
    opened.push(() => {
      isStopping = true;
      return watcher.stop(leftMs());
    });
    warnOfOrphans(ledger, watcher, log);

    const { refusalOf, publicUrl, channels } = notifications;
    const tracker = trackerOf({ config, watcher, clock, refusalOf, isTraced: traces !== undefined });
    const intake = scaling?.startIntake(traces ? traces.intake(tracker.track) : tracker.track);
    opened.push(() => intake?.close(leftMs()));

    const users = usersOf(config, userPool);
    const settings = new SettingsReload({
      process: 'server',
      config,
      source: deps.settings,
      async prepare(next) {
        const changed = usableUpstreams(next);
        refuseOwnBearer(next);
        if (!next.auth.api_key && !next.auth.admin_token && !next.oidc.issuer && !ledger.credentials.isAnyKept())
          throw new StartError('no credential would be left: set DAWATCH_API_KEY, or run `dawatch token create`');
        const applyRouting = await notifications.prepare(next);
        return () => {
          credentials = credentialsOf(next.auth, ledger.credentials, clock);
          users.useBearer(next.upstreams.default.bearer);
          applyRouting();
          for (const [name, upstream] of changed) {
            clients.get(name)?.useApiKey(upstream.api_key);
            submitters.get(name)?.submitter.useApiKey(upstream.api_key);
            watcher.reconfigure(name, budgetOf(upstream));
          }
        };
      },
      record: auditReload(ledger, clock),
      clock,
      log,
    });

    const server = await buildServer({
      config,
      settings: () => settings.config,
      clock,
      ledger,
      watcher,
      tracker,
      tracer: traces?.tracer,
      lookup,
      users,
      submitters,
      credentials: (hash) => credentials.find(hash),
      hasConfiguredAdmin: () => credentials.hasConfiguredAdmin,
      reload: (actor) => settings.reload(actor),
      refusalOf,
      publicUrl,
      channels,
      health: () => ({ ...watcher.health(), redis: scaling?.health() }),
      hour: stats.hour,
      metrics,
      queues: scaling?.queues,
      onUnreadable,
      log: log as unknown as FastifyBaseLogger,
      version: VERSION,
      responseDeadlineMs: responseDeadlineMs(config, upstreams),
    });
    opened.push(async () => {
      await withTimeout(leftMs(), server.close());
      // Incomplete requests must not keep the process running.
      server.server.closeAllConnections();
    });
    const url = await server.listen({
      host: config.server.host,
      port: config.server.port,
      listenTextResolver: () => 'http.listening',
    });
    // After listening, so that a server that cannot listen sends no polls.
    const startPolling = () => {
      watcher.start();
      // Stopped first, so that no heartbeat reports the stop of the watcher as a defect.
      opened.push(notifications.startHeartbeat(() => defectOf({ ledger, watcher, clock })));
    };
    if (scaling) void scaling.previousPollsEnded.then(() => isStopping || startPolling());
    else startPolling();
    log.info({ url, database: config.database, upstreams: [...clients.keys()], version: VERSION }, 'server.started');

    let closing: Promise<void> | undefined;
    return {
      url,
      reload: (actor) => settings.reload(actor),
      close() {
        settings.close();
        closing ??= closeAll().then(() => log.info('server.stopped'));
        return closing;
      },
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

function watcherSettings(
  config: Config,
  upstreams: [string, UsableUpstream][],
  policy: NonNullable<AppDeps['policy']>,
) {
  const { pacing, breaker, submissions } = config;
  const lagPrices = new Map(upstreams.map(([name, { lag_price }]) => [name, lag_price ?? pacing.lag_price]));
  const schedulerSettingsOf = (upstream: UsableUpstream): SchedulerSettings => ({
    budget: budgetOf(upstream),
    breaker: {
      failures: breaker.failures,
      probeMs: breaker.probe_after_s * 1_000,
      maxProbeMs: breaker.max_probe_s * 1_000,
    },
    leaseMs: leaseMsOf(upstream),
    recheckMs: submissions.recheck_after_s * 1_000,
  });
  return {
    schedulers: new Map(upstreams.map(([name, upstream]) => [name, schedulerSettingsOf(upstream)])),
    policy: (upstream: string) => policy({ lagPrice: lagPrices.get(upstream) ?? pacing.lag_price }),
    recheck: submissions.recheck_after_s > 0,
  };
}

/** Returns why this server does not do its work; undefined: it writes the ledger, and polls every upstream when a poll is due. */
function defectOf({ ledger, watcher, clock }: { ledger: Ledger; watcher: Watcher; clock: Clock }): string | undefined {
  try {
    ledger.probe(clock.now());
  } catch {
    return 'the ledger is not writable';
  }
  const upstreams = watcher.notPolling();
  return upstreams.length === 0 ? undefined : `the poll loop of ${upstreams.join(', ')} does not run`;
}

/** Exceeds everything a request may wait for: its body, the ledger, the request budget and the upstream. */
function responseDeadlineMs({ server, limits }: Config, upstreams: [string, UsableUpstream][]): number {
  const longestLeaseMs = Math.max(...upstreams.map(([, upstream]) => leaseMsOf(upstream)));
  return (server.timeout_s + limits.tracking_wait_s) * 1_000 + ON_DEMAND_WAIT_MS + longestLeaseMs;
}

/** Returns undefined if no Redis is configured. */
async function startScaling({
  config,
  ...deps
}: { config: Config } & Omit<Parameters<typeof StartScaling>[0], 'redis'>) {
  const { url } = config.redis;
  if (url === undefined) return undefined;
  // Loaded on demand: importing BullMQ would slow every start (row `start` of `npm run bench`).
  const { startScaling: start } = await import('./wiring/scaling.ts');
  return start({ redis: { ...config.redis, url }, ...deps });
}

/** Logs a warning for submissions whose upstream is no longer configured: they are kept, and not polled. */
function warnOfOrphans(ledger: Ledger, watcher: Watcher, log: Log): void {
  for (const [upstream, submissions] of ledger.submissions.watchedCounts())
    if (!watcher.hasUpstream(upstream)) log.warn({ upstream, submissions }, 'upstream.not_configured');
}
