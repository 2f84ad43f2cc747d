import { lookup } from 'node:dns';
import type { FastifyBaseLogger } from 'fastify';
import { credentialsOf, ensureCredential } from './access/credentials-store.ts';
import { usersOf } from './access/users.ts';
import { type Clock, withTimeout } from './lib/clock.ts';
import { escapeText } from './lib/text.ts';
import type { AttemptReport } from './notifications/attempt.ts';
import type { Channel } from './notifications/channels/channel.ts';
import { channelTypeOf } from './notifications/channels/index.ts';
import {
  checkWebhookUrl,
  createWebhookChannel,
  makeSecret,
} from './notifications/channels/webhook.ts';
import type { ChannelDescription } from './notifications/channels-routes.ts';
import { CALLBACKS_ID, DEAD_REASONS, parseDestination } from './notifications/delivery.ts';
import { Dispatcher } from './notifications/dispatcher.ts';
import { EventFeed } from './notifications/event-feed.ts';
import { createAddressGuard } from './notifications/transport/address-guard.ts';
import { createHttpPost, type HttpPost } from './notifications/transport/http-post.ts';
import { StartError } from './operations/config/start-error.ts';
import type { Log } from './operations/logging/event-catalog.ts';
import type { OpenLog } from './operations/logging/logger.ts';
import { VERSION } from './operations/version.ts';
import type { WatcherListener } from './polling/listeners.ts';
import { createLocalEngine } from './polling/poll-engine.ts';
import { openUpstreams } from './polling/upstreams.ts';
import { Intake } from './submissions/intake.ts';
import { openFeatures } from './wiring/features.ts';
import { type Ledger, openLedger } from './wiring/ledger-stores.ts';
import { startMaintenance } from './wiring/maintenance.ts';
import type { Counters } from './wiring/metrics/counters.ts';
import { createMetrics } from './wiring/metrics/metrics.ts';
import { openPolling, type Policy } from './wiring/polling.ts';
import { buildServer } from './wiring/server.ts';
import { type Config, TUNING, type Tuning } from './wiring/settings.ts';

export type App = {
  url: string;
  /**
   * Stops accepting requests, completes those in flight within 15 s, and closes
   * everything. Idempotent.
   */
  close(): Promise<void>;
};

export type AppDeps = {
  config: Config;
  log: OpenLog;
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

/** A shorter step of the clock is not reported. */
const REPORTED_STEP_MS = 60_000;

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
    const upstreams = openUpstreams(config, { clock, version: VERSION });
    opened.push(() => upstreams.close());
    const metrics = createMetrics({ version: VERSION });
    const { counters } = metrics;
    const ignoreSteps = clock.onStep?.((stepMs) => {
      if (Math.abs(stepMs) < REPORTED_STEP_MS) return;
      counters.clockStepped(stepMs < 0 ? 'back' : 'forward');
      log.warn({ step_s: Math.round(stepMs / 1_000) }, 'clock.stepped');
    });
    opened.push(() => ignoreSteps?.());
    const ledger = openLedger({ config, clock, log, onSyncFailed: deps.onSyncFailed });
    opened.push(() => ledger.close());
    const first = ensureCredential({ config, ledger, now: now() });
    if (first.kind === 'refused') throw new StartError(first.reason);
    if (first.kind === 'made') deps.onNewKey(first.key);
    const credentials = credentialsOf(config.auth, ledger.credentials, clock, config.oidc.issuer);
    const users = usersOf(config, upstreams.userClient);

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
        return {
          ledgerWritable: ledgerWritable && isWritable,
          upstreams,
          redis: redisHealth(),
          logLinesDropped: log.linesDropped(),
        };
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
        live: polling.live,
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

/** The channel that adds every event to a queue, if Redis is configured. */
const QUEUE_CHANNEL = 'queue';
const EVERYTHING = [{ types: ['*'], metadata: null }];
const MASK = '********';

/** `address`: without secrets. */
type QueueChannel = { channel: Channel; address: string };

async function startNotifications(deps: {
  config: Config;
  ledger: Ledger;
  /** Undefined without Redis. */
  queue: QueueChannel | undefined;
  clock: Clock;
  random: () => number;
  log: Log;
  version: string;
  counters: Counters;
  tuning: Tuning;
}) {
  const { config, ledger, queue, clock, random, log, version, counters, tuning } = deps;
  const { webhooks, deliveries } = ledger;
  const now = () => clock.now();

  webhooks.ensureCallbacks(makeSecret, now());
  const guard = createAddressGuard({ allow: config.webhooks.allow });
  const refusalOf = (url: string) =>
    checkWebhookUrl(url, { allowHttp: config.webhooks.allow_http, guard });
  const http = createHttpPost({ guard, version, clock });
  // The operator's addresses are all allowed, and resolved by the system with its search domains.
  const operatorHttp = createHttpPost({ guard: undefined, version, clock, lookup });
  const channels = await createChannels(config, operatorHttp.post);
  if (queue) channels.set(QUEUE_CHANNEL, queue.channel);
  const descriptions = describeChannels(config, queue);
  const routes = descriptions.map(({ name, routes: subscriptions }) => ({
    name,
    subscriptions,
    gatherMs: name === QUEUE_CHANNEL ? 0 : tuning.gatherMs,
  }));
  ledger.routes.setChannels(routes);

  /** A label with few values. A channel that is no longer configured counts as a queue. */
  const kindOf = (destination: string): string => {
    const parsed = parseDestination(destination);
    return parsed.kind === 'channel'
      ? (config.channels[parsed.name]?.type ?? QUEUE_CHANNEL)
      : parsed.kind;
  };
  const types = Object.values(config.channels).map(({ type }) => type);
  for (const kind of new Set(['webhook', 'callback', QUEUE_CHANNEL, ...types]))
    for (const reason of DEAD_REASONS) counters.deadLettered({ kind, reason, count: 0 });
  deliveries.onDead(({ destination, ...dead }) =>
    counters.deadLettered({ kind: kindOf(destination), ...dead }),
  );

  const channelOf = (destination: string): Channel | undefined => {
    const parsed = parseDestination(destination);
    if (parsed.kind === 'channel') return channels.get(parsed.name);
    const id = parsed.kind === 'webhook' ? parsed.webhookId : CALLBACKS_ID;
    const endpoint = webhooks.endpoint(id, now());
    // The signed time must follow steps of the system clock: receivers compare it with theirs.
    return (
      endpoint && createWebhookChannel({ post: http.post, endpoint, refusalOf, now: Date.now })
    );
  };
  const logAttempted = logAttempt(log);
  const dispatcher = new Dispatcher({
    store: deliveries,
    channelOf,
    clock,
    random,
    concurrency: tuning.deliveriesInFlight,
    onAttempted(attempted) {
      logAttempted(attempted);
      const { destination, result, next, durationMs } = attempted;
      counters.deliveryAttempted({
        kind: kindOf(destination),
        result: result.kind === 'delivered' ? result.kind : next.kind,
        durationMs,
      });
    },
    onFailed: (error) => log.error({ err: error }, 'dispatcher.failed'),
  });
  dispatcher.start();

  return {
    refusalOf,
    /** Sends a GET request to an address of the operator, with the limits of the channels. */
    get: operatorHttp.get,
    channels: descriptions,
    /** Stops sending and waits up to `limitMs` for attempts in flight. */
    async stop(limitMs: number): Promise<void> {
      await dispatcher.stop(limitMs);
      const all = [...channels.values()].map((channel) => channel.close());
      await Promise.all([http.close(), operatorHttp.close(), ...all]);
    },
  };
}

async function createChannels(
  { channels, server }: Config,
  post: HttpPost['post'],
): Promise<Map<string, Channel>> {
  const created = new Map<string, Channel>();
  const deps = { post, publicUrl: server.public_url };
  for (const [name, config] of Object.entries(channels))
    created.set(name, await channelTypeOf(config).create(config, deps));
  return created;
}

/** Describes the channels and the queue in the order of the settings, without secrets. */
function describeChannels(
  { channels, routes }: Config,
  queue: QueueChannel | undefined,
): ChannelDescription[] {
  const configured = Object.entries(channels).map(([name, config]) => {
    const { type, address, receiver } = channelTypeOf(config);
    return {
      name,
      type,
      address: [maskedAddress(address(config)), receiver?.(config)].filter(Boolean).join(', '),
      routes: routes
        .filter((route) => route.channels.includes(name))
        .map(({ types, metadata = null }) => ({ types, metadata })),
    };
  });
  if (!queue) return configured;
  const { address } = queue;
  return [...configured, { name: QUEUE_CHANNEL, type: QUEUE_CHANNEL, address, routes: EVERYTHING }];
}

/** Returns an address with its user, password, path and query masked: each may be a secret. */
function maskedAddress(address: string): string {
  const url = URL.parse(address);
  if (!url) return MASK;
  const user = url.username === '' && url.password === '' ? '' : `${MASK}@`;
  const path = url.pathname.replace(/^\//, '') === '' && url.search === '' ? '' : `/${MASK}`;
  return `${url.protocol}//${user}${url.host}${path}`;
}

function logAttempt(log: Log): (attempted: AttemptReport) => void {
  return ({
    destination,
    deliveryIds,
    eventIds,
    eventType,
    submissionId,
    attempt,
    durationMs,
    result,
    next,
  }) => {
    const fields = {
      destination,
      delivery_id: deliveryIds[0],
      event_id: eventIds[0],
      submission_id: submissionId,
      type: eventType,
      events: eventIds.length,
      attempt,
      duration_ms: durationMs,
      http_status: result.httpStatus ?? undefined,
    };
    if (result.kind === 'delivered') {
      const { warning } = result;
      log[warning ? 'warn' : 'info']({ ...fields, error: warning }, 'delivery.delivered');
    } else if (next.kind === 'retry')
      log.warn(
        { ...fields, error: escapeText(result.error), next_at: new Date(next.at).toISOString() },
        'delivery.failed',
      );
    else
      log.error({ ...fields, error: escapeText(result.error), reason: next.kind }, 'delivery.dead');
  };
}
