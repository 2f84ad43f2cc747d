import type { FastifyBaseLogger } from 'fastify';
import { credentialsOf, ensureCredential } from './access/credentials-store.ts';
import { usersOf } from './access/users.ts';
import type { Clock } from './lib/clock.ts';
import { withTimeout } from './lib/clock.ts';
import { EventFeed } from './notifications/event-feed.ts';
import { StartError } from './operations/config/start-error.ts';
import type { Log } from './operations/logging/event-catalog.ts';
import { VERSION } from './operations/version.ts';
import type { WatcherListener } from './polling/listeners.ts';
import { createLocalEngine } from './polling/poll-engine.ts';
import { openUpstreams } from './polling/upstreams.ts';
import { Intake } from './submissions/intake.ts';
import { openFeatures } from './wiring/features.ts';
import { openLedger } from './wiring/ledger-stores.ts';
import { startMaintenance } from './wiring/maintenance.ts';
import { createMetrics } from './wiring/metrics/metrics.ts';
import { startNotifications } from './wiring/notifications.ts';
import { openPolling, type Policy } from './wiring/polling.ts';
import { buildServer } from './wiring/server.ts';
import type { Config } from './wiring/settings.ts';
import { TUNING, type Tuning } from './wiring/settings.ts';

export type App = {
  /** Base URL of the server. */
  url: string;
  /**
   * Stops accepting requests, completes those in flight within 15 s, and closes
   * everything. Idempotent.
   */
  close(): Promise<void>;
};

export type AppDeps = {
  config: Config;
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
  policy?: Policy;
  tuning?: Partial<Tuning>;
};

/**
 * Opens the ledger and the features, starts what runs in the background, listens, and polls. What
 * was opened is closed in reverse order, also if starting fails midway. Throws StartError,
 * LedgerError, or an error of listening.
 */
export async function startApp(deps: AppDeps): Promise<App> {
  const { config, log, clock, random } = deps;
  const tuning = { ...TUNING, ...deps.tuning };
  const now = () => clock.now();
  const opened: (() => unknown)[] = [];
  let closeBy = Number.POSITIVE_INFINITY;
  const leftMs = () => Math.max(0, closeBy - now());
  let isStopping = false;
  const closeAll = async () => {
    isStopping = true;
    closeBy = now() + tuning.shutdownMs;
    for (const close of opened.splice(0).reverse()) await close();
  };
  try {
    // What the features use.
    const upstreams = openUpstreams(config, { clock, version: VERSION });
    opened.push(() => upstreams.close());
    const metrics = createMetrics({ version: VERSION });
    const { counters } = metrics;
    const ledger = openLedger({ config, clock, log, onSyncFailed: deps.onSyncFailed });
    opened.push(() => ledger.close());
    const first = ensureCredential({ config, ledger, now: now() });
    if (first.kind === 'refused') throw new StartError(first.reason);
    if (first.kind === 'made') deps.onNewKey(first.key);
    const credentials = credentialsOf(config.auth, ledger.credentials, clock, config.oidc.issuer);
    const users = usersOf(config, upstreams.userClient);

    // The features.
    const local = createLocalEngine({ clock, sendPoll: upstreams.sendPoll });
    const shared = { config, ledger, upstreams, clock, random, log, counters, tuning };
    const { features, redisHealth } = await openFeatures({ ...shared, local });
    opened.push(() => Promise.all(features.map((feature) => feature.close?.())));
    const notifications = await startNotifications({
      ...shared,
      queue: features.find(({ queueChannel }) => queueChannel)?.queueChannel,
      version: VERSION,
    });
    opened.push(() => notifications.stop(leftMs()));
    const maintenance = startMaintenance(shared);
    opened.push(() => maintenance.stop());
    ledger.stats.onEnded(counters.submissionEnded);
    ledger.stats.onCommitted(counters.transactionCommitted);
    const polling = openPolling({
      ...shared,
      engine: features.find(({ engine }) => engine)?.engine ?? local,
      policy: deps.policy,
      listeners: [counters, deps.listener ?? {}],
    });
    const { watcher, lookup, chainOf } = polling;
    opened.push(() => polling.stop(leftMs()));
    const intake = new Intake({
      config,
      store: ledger.store,
      clock,
      hasUpstream: (name) => watcher.hasUpstream(name),
      refusalOf: notifications.refusalOf,
    });

    // The server. What follows runs only if it can listen.
    const server = await buildServer({
      ...shared,
      ...notifications,
      version: VERSION,
      watcher,
      intake,
      lookup,
      feed: new EventFeed({ events: ledger.events, clock, log }),
      features,
      users,
      credentials: (hash) => credentials.find(hash),
      chainOf,
      hasConfiguredAdmin: credentials.hasConfiguredAdmin,
      health() {
        const { ledgerWritable, upstreams } = polling.health();
        const isWritable = features.every((feature) => feature.isLedgerWritable?.() !== false);
        return { ledgerWritable: ledgerWritable && isWritable, upstreams, redis: redisHealth() };
      },
      metrics,
      log: log as unknown as FastifyBaseLogger,
      // More than a request may wait for: its body, the request budget and the upstream.
      responseDeadlineMs: tuning.requestTimeoutMs + polling.longestPollMs,
    });
    opened.push(async () => {
      await withTimeout(leftMs(), server.close());
      // Incomplete requests must not keep the process running.
      server.server.closeAllConnections();
    });
    const { host, port } = config.server;
    const listenTextResolver = () => 'http.listening';
    const url = await server.listen({ host, port, listenTextResolver });
    const begun = Promise.withResolvers<void>();
    for (const { start, stop } of features) {
      opened.push(() => stop?.(leftMs()));
      start?.({
        track: (body) => intake.track(body),
        get: notifications.get,
        defect: polling.defect,
        isLedgerWritable: () => watcher.health().ledgerWritable,
        polling: begun.promise,
      });
    }
    const startPolling = () => {
      if (isStopping) return;
      polling.start();
      begun.resolve();
    };
    const waits = features.flatMap(({ previousPollsEnded }) => previousPollsEnded ?? []);
    if (waits.length > 0) void Promise.all(waits).then(startPolling);
    else startPolling();
    log.info(
      { url, database: config.database, upstreams: upstreams.names, version: VERSION },
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
