import { lookup } from 'node:dns';
import type { Clock } from '../lib/clock.ts';
import { escapeText } from '../lib/text.ts';
import type { AttemptReport } from '../notifications/attempt.ts';
import type { Channel } from '../notifications/channels/channel.ts';
import { channelTypeOf } from '../notifications/channels/index.ts';
import {
  checkWebhookUrl,
  createWebhookChannel,
  makeSecret,
} from '../notifications/channels/webhook.ts';
import type { ChannelDescription } from '../notifications/channels-routes.ts';
import { CALLBACKS_ID, DEAD_REASONS, parseDestination } from '../notifications/delivery.ts';
import { Dispatcher } from '../notifications/dispatcher.ts';
import { createAddressGuard } from '../notifications/transport/address-guard.ts';
import { createHttpPost, type HttpPost } from '../notifications/transport/http-post.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import type { Ledger } from './ledger-stores.ts';
import type { Counters } from './metrics/counters.ts';
import type { Config, Tuning } from './settings.ts';

/** The channel that adds every event to a queue, if Redis is configured. */
const QUEUE_CHANNEL = 'queue';
const EVERYTHING = [{ types: ['*'], metadata: null }];
const MASK = '********';

/** `address`: without secrets. */
type QueueChannel = { channel: Channel; address: string };

/** Starts the dispatcher with all channels. */
export async function startNotifications(deps: {
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
  const http = createHttpPost({ guard, version, now });
  // The operator's addresses are all allowed, and resolved by the system with its search domains.
  const operatorHttp = createHttpPost({ guard: undefined, version, now, lookup });
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
    /** Returns why a URL is not allowed for webhooks and callbacks, or undefined. */
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

/** Returns a listener that writes one line per delivery attempt. */
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
    if (result.kind === 'delivered') log.info(fields, 'delivery.delivered');
    else if (next.kind === 'retry')
      log.warn(
        { ...fields, error: escapeText(result.error), next_at: new Date(next.at).toISOString() },
        'delivery.failed',
      );
    else
      log.error({ ...fields, error: escapeText(result.error), reason: next.kind }, 'delivery.dead');
  };
}
