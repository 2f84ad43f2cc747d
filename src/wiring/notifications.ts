import type { Clock } from '../lib/clock.ts';
import { escapeText } from '../lib/text.ts';
import type { AttemptReport } from '../notifications/attempt.ts';
import type { Channel } from '../notifications/channels/channel.ts';
import {
  checkWebhookUrl,
  createWebhookChannel,
  makeSecret,
} from '../notifications/channels/webhook.ts';
import { DEAD_REASONS, parseDestination } from '../notifications/delivery.ts';
import { Dispatcher } from '../notifications/dispatcher.ts';
import type { ChannelRoute } from '../notifications/outbox.ts';
import { createAddressGuard } from '../notifications/transport/address-guard.ts';
import { createHttpPost } from '../notifications/transport/http-post.ts';
import { CALLBACKS_ID } from '../notifications/webhook.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import type { Counters } from '../operations/metrics/counters.ts';
import { Channels } from './channels.ts';
import type { Ledger } from './ledger-stores.ts';
import type { Config } from './settings.ts';
import type { Tuning } from './tuning.ts';

/** Starts the dispatcher with all channels. */
export async function startNotifications(deps: {
  config: Config;
  ledger: Ledger;
  /** Undefined without Redis. */
  queue: { channel: Channel; address: string } | undefined;
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
  const channels = await Channels.open({ config, queue, version, now });
  ledger.routes.setChannels(routesOf(config, channels.names, tuning.gatherMs));
  for (const kind of channels.kinds)
    for (const reason of DEAD_REASONS) counters.deadLettered({ kind, reason, count: 0 });

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

  deliveries.onDead(({ destination, ...dead }) =>
    counters.deadLettered({ kind: channels.kindOf(destination), ...dead }),
  );
  const logAttempted = logAttempt(log);
  const dispatcher = new Dispatcher({
    store: deliveries,
    channelOf,
    clock,
    random,
    concurrency: config.deliveries.concurrency,
    onAttempted(attempted) {
      logAttempted(attempted);
      const { destination, result, next, durationMs } = attempted;
      const kind = channels.kindOf(destination);
      counters.deliveryAttempted({
        kind,
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
    get: channels.httpGet,
    /** The configured channels and the queue, in the order of the settings. */
    channels: channels.describe(config.routes),
    /** Stops sending and waits up to `limitMs` for attempts in flight. */
    async stop(limitMs: number): Promise<void> {
      await dispatcher.stop(limitMs);
      await Promise.all([http.close(), channels.close()]);
    },
  };
}

/** The queue channel receives all events, every other channel the events of its routes. */
function routesOf(
  { routes, channels }: Config,
  names: readonly string[],
  gatherMs: number,
): ChannelRoute[] {
  return names.map((name) => {
    const own = routes.filter((route) => route.channels.includes(name));
    const everything = [{ types: ['*'], metadata: null }];
    const channel = channels[name];
    return {
      name,
      subscriptions: channel
        ? own.map(({ types, metadata = null }) => ({ types, metadata }))
        : everything,
      gatherMs: channel ? gatherMs : 0,
    };
  });
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
