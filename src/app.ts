import type { FastifyBaseLogger } from 'fastify';
import { credentialsOf, ensureCredential } from './access/credentials-store.ts';
import { refuseOwnBearer, usersOf } from './access/users.ts';
import type { Actor } from './lib/actor.ts';
import type { Clock } from './lib/clock.ts';
import { withTimeout } from './lib/with-timeout.ts';
import type { ReloadResult } from './operations/config/reload.ts';
import type { Config } from './operations/config/schema.ts';
import { StartError } from './operations/config/start-error.ts';
import type { Log } from './operations/logging/logger.ts';
import { createMetrics } from './operations/metrics/metrics.ts';
import type { TracerSettings } from './operations/tracing/tracer.ts';
import { VERSION } from './operations/version.ts';
import type { PolicyFactory } from './pacing/index.ts';
import { learnedPacing } from './pacing/index.ts';
import type { WatcherListener } from './polling/listeners.ts';
import { createLocalEngine } from './polling/local-engine.ts';
import { ON_DEMAND_WAIT_MS } from './polling/on-demand-polls.ts';
import { openLedger } from './wiring/ledger.ts';
import { redisOf } from './wiring/redis.ts';
import { auditReload, SettingsReload, type SettingsSource } from './wiring/reload.ts';
import type { Services } from './wiring/route-services.ts';
import type { startScaling as StartScaling } from './wiring/scaling.ts';
import { buildServer } from './wiring/server.ts';
import { startServices } from './wiring/services.ts';
import { startTracing } from './wiring/start-tracing.ts';
import {
  budgetOf,
  createClient,
  createSubmitters,
  createUserClient,
  leaseMsOf,
  type UsableUpstream,
  upstreamClientFor,
  usableUpstreams,
} from './wiring/upstreams.ts';

export type App = {
  /** Base URL of the server. */
  url: string;
  /**
   * Applies changed settings, all or none. Rejects if the result cannot be audited; then nothing
   * was applied.
   */
  reload(actor: Actor): Promise<ReloadResult>;
  /**
   * Stops accepting requests, completes those in flight within server.shutdown_s, and closes
   * everything. Idempotent.
   */
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
  /**
   * Called if the disk failed to store committed data. The process must then end at once. Default:
   * the error is uncaught.
   */
  onSyncFailed?: (error: unknown) => void;
  /**
   * Receives the service key that is generated if none is configured. It is stored only as a hash.
   */
  onNewKey: (key: string) => void;
  /** Receives everything the watcher commits, like the log. */
  listener?: WatcherListener;
  /** When to poll. Default: by the learned distribution of finality times. */
  policy?: (settings: { lagPrice: number }) => PolicyFactory;
};

/**
 * Starts all modules and connects them. They are closed in reverse order, also if starting fails
 * midway. Throws StartError, LedgerError, or an error of listening.
 */
export async function startApp(deps: AppDeps): Promise<App> {
  const { config, log, clock, random, onSyncFailed } = deps;
  const upstreams = usableUpstreams(config);
  const opened: (() => unknown)[] = [];
  let closeBy = Number.POSITIVE_INFINITY;
  const leftMs = () => Math.max(0, closeBy - clock.now());
  let isStopping = false;
  const closeAll = async () => {
    isStopping = true;
    closeBy = clock.now() + config.server.shutdown_s * 1_000;
    for (const close of opened.splice(0).reverse()) await close();
  };
  try {
    const metrics = createMetrics({ version: VERSION });
    const { counters } = metrics;
    const ledger = openLedger({ config, clock, log, onSyncFailed });
    opened.push(() => ledger.close());
    const first = ensureCredential({ config, ledger, now: clock.now() });
    if (first.kind === 'refused') throw new StartError(first.reason);
    if (first.kind === 'made') {
      await ledger.whenDurable();
      deps.onNewKey(first.key);
    }
    let credentials = credentialsOf(config.auth, ledger.credentials, clock, config.oidc.issuer);

    const traces = await startTracing(deps.tracing, { clock, log, version: VERSION });
    opened.push(() => traces?.tracer.close(leftMs()));
    const clients = new Map(
      upstreams.map(([name, upstream]) => [name, createClient(upstream, clock)]),
    );
    opened.push(() => Promise.all([...clients.values()].map((client) => client.close())));
    const userClient = createUserClient(config.upstreams.default, clock);
    opened.push(() => userClient?.close());
    const submitters = createSubmitters(upstreams, clock);
    opened.push(() =>
      Promise.all([...submitters.values()].map(({ submitter }) => submitter.close())),
    );
    const local = createLocalEngine({
      clock,
      sendPoll: (upstream, id) => upstreamClientFor(clients, upstream).getSubmissionInfo(id),
    });
    const scaling = await startScaling({ config, upstreams, ledger, local, clock, log, counters });
    opened.push(() => scaling?.close());

    const engine = scaling?.engine ?? local;
    const parts = {
      upstreams,
      engine,
      scaling,
      traces,
      clock,
      random,
      policy: deps.policy ?? learnedPacing,
    };
    const listeners = deps.listener ? [deps.listener] : [];
    const own = { config, ledger, log, metrics, listeners };
    const { services, notifications, close } = await startServices({ ...parts, ...own });
    const { watcher } = services;
    opened.push(() => close(leftMs));

    const users = usersOf(config, userClient);
    const settings = new SettingsReload({
      process: 'server',
      config,
      source: deps.settings,
      async prepare(next) {
        const changed = usableUpstreams(next);
        refuseOwnBearer(next);
        if (
          !next.auth.api_key &&
          !next.auth.admin_token &&
          !next.oidc.issuer &&
          !ledger.credentials.isAnyKept()
        )
          throw new StartError(
            'no credential would be left: set DAWATCH_API_KEY, or run `dawatch token create`',
          );
        const applyRouting = await notifications.prepare(next);
        const apply = () => {
          credentials = credentialsOf(next.auth, ledger.credentials, clock, next.oidc.issuer);
          users.useBearer(next.upstreams.default.bearer);
          applyRouting();
          for (const [name, upstream] of changed) {
            clients.get(name)?.useApiKey(upstream.api_key);
            submitters.get(name)?.submitter.useApiKey(upstream.api_key);
            watcher.reconfigure(name, budgetOf(upstream));
          }
        };
        return { apply };
      },
      record: auditReload(ledger, clock),
      clock,
      log,
    });

    const server = await buildServer({
      ...services,
      config,
      settings: () => settings.config,
      clock,
      tracer: traces?.tracer,
      users,
      submitters,
      credentials: (hash) => credentials.find(hash),
      hasConfiguredAdmin: () => credentials.hasConfiguredAdmin,
      reload: (actor) => settings.reload(actor),
      health: () => ({ ...watcher.health(), redis: scaling?.health() }),
      metrics,
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
      opened.push(notifications.startHeartbeat(() => defectOf(services, clock)));
    };
    if (scaling) void scaling.previousPollsEnded.then(() => isStopping || startPolling());
    else startPolling();
    log.info(
      { url, database: config.database, upstreams: [...clients.keys()], version: VERSION },
      'server.started',
    );

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

/**
 * Returns why this server does not work; undefined if it can write its ledger and all its poll
 * loops run.
 */
function defectOf({ ledger, watcher }: Services, clock: Clock): string | undefined {
  if (ledger.isDiskHanging) return 'the disk of the ledger does not end a sync';
  try {
    ledger.probe(clock.now());
  } catch {
    return 'the ledger is not writable';
  }
  const upstreams = watcher.notPolling();
  return upstreams.length > 0 ? `the poll loop of ${upstreams.join(', ')} does not run` : undefined;
}

/**
 * Exceeds everything a request may wait for: its body, the ledger, the request budget and the
 * upstream.
 */
function responseDeadlineMs(
  { server, limits }: Config,
  upstreams: [string, UsableUpstream][],
): number {
  const longestLeaseMs = Math.max(...upstreams.map(([, upstream]) => leaseMsOf(upstream)));
  return (server.timeout_s + limits.tracking_wait_s) * 1_000 + ON_DEMAND_WAIT_MS + longestLeaseMs;
}

/** Returns undefined if no Redis is configured. */
async function startScaling({
  config,
  ...deps
}: { config: Config } & Omit<Parameters<typeof StartScaling>[0], 'redis'>) {
  const redis = redisOf(config);
  if (!redis) return undefined;
  // Loaded on demand: importing BullMQ would slow every start (row `start` of `npm run bench`).
  const { startScaling: start } = await import('./wiring/scaling.ts');
  return start({ redis, ...deps });
}
