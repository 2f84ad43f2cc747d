import { lookup } from 'node:dns';
import type { ChannelConfig, Config } from '../config/schema.ts';
import { parseDestination } from '../domain/notifications/delivery.ts';
import { createAppriseChannel } from '../notify/channels/apprise.ts';
import type { Channel } from '../notify/channels/channel.ts';
import { createDiscordChannel } from '../notify/channels/discord.ts';
import { createSlackChannel } from '../notify/channels/slack.ts';
import { createTeamsChannel } from '../notify/channels/teams.ts';
import { createAddressGuard } from '../notify/transport/address-guard.ts';
import { createHttpPost, type HttpPost } from '../notify/transport/http-post.ts';

/** The channel that adds every event to a queue, if Redis is configured. */
const QUEUE_CHANNEL = 'queue';

/**
 * Creates the configured channels by name. Their addresses are set by the operator, so all are allowed. The modules for mail and
 * queues are loaded on demand, because importing them would slow every start.
 */
export async function createChannels(deps: { config: Config; version: string; now: () => number }): Promise<{
  channels: ReadonlyMap<string, Channel>;
  close: () => Promise<void>;
}> {
  const { config, version, now } = deps;
  const guard = createAddressGuard({ allow: ['0.0.0.0/0', '::/0'] });
  // The operator's host names are resolved by the system, including its search domains.
  const http = createHttpPost({ guard, version, now, lookup });
  const channels = new Map<string, Channel>();
  for (const [name, channel] of Object.entries(config.channels))
    channels.set(name, await createChannel(channel, http.post));
  const { url, prefix } = config.redis;
  if (url !== undefined) {
    const { createQueueChannel } = await import('../notify/channels/queue.ts');
    channels.set(QUEUE_CHANNEL, createQueueChannel({ redisUrl: url, prefix }));
  }
  const close = async () => {
    await Promise.all([http.close(), ...[...channels.values()].map((channel) => channel.close())]);
  };
  return { channels, close };
}

/** Returns the kind of a destination, a label with few values. */
export function kindOf(destination: string, channels: Config['channels']): string {
  const parsed = parseDestination(destination);
  return parsed.kind === 'channel' ? (channels[parsed.name]?.type ?? QUEUE_CHANNEL) : parsed.kind;
}

/** Returns all kinds. A channel that is no longer configured counts as a queue. */
export function kindsOf(channels: Config['channels']): ReadonlySet<string> {
  return new Set(['webhook', 'callback', QUEUE_CHANNEL, ...Object.values(channels).map(({ type }) => type)]);
}

async function createChannel(config: ChannelConfig, post: HttpPost['post']): Promise<Channel> {
  switch (config.type) {
    case 'slack':
      return createSlackChannel({ url: config.url, post });
    case 'discord':
      return createDiscordChannel({ url: config.url, post });
    case 'teams':
      return createTeamsChannel({ url: config.url, post });
    case 'apprise':
      return createAppriseChannel({ url: config.url, post, ...(config.tag !== undefined && { tag: config.tag }) });
    case 'email': {
      const { createEmailChannel } = await import('../notify/channels/email.ts');
      return createEmailChannel({ smtpUrl: config.smtp_url, from: config.from, to: config.to });
    }
    default:
      return config satisfies never;
  }
}
