import { lookup } from 'node:dns';
import type { ChannelConfig, Config } from '../config-schema.ts';
import { createAddressGuard } from '../notify/address-guard.ts';
import { createAppriseChannel } from '../notify/apprise.ts';
import type { Channel } from '../notify/channel.ts';
import { createDiscordChannel } from '../notify/discord.ts';
import { createEmailChannel } from '../notify/email.ts';
import { createHttpPost, type HttpPost } from '../notify/http-post.ts';
import { createQueueChannel } from '../notify/queue.ts';
import { createSlackChannel } from '../notify/slack.ts';
import { createTeamsChannel } from '../notify/teams.ts';

/** The channel of every event's job, where there is a Redis. */
const QUEUE_CHANNEL = 'queue';

/** The channels of the settings, by name; their addresses are the operator's own, so they may be anywhere. */
export function createChannels(deps: { config: Config; version: string; now: () => number }): {
  channels: ReadonlyMap<string, Channel>;
  close: () => Promise<void>;
} {
  const { config, version, now } = deps;
  const guard = createAddressGuard({ allow: ['0.0.0.0/0', '::/0'] });
  // Their names are the operator's own too, so the system looks them up, search domains included.
  const http = createHttpPost({ guard, version, now, lookup });
  const channels = new Map(
    Object.entries(config.channels).map(([name, channel]) => [name, createChannel(channel, http.post)]),
  );
  const { url, prefix } = config.redis;
  if (url !== undefined) channels.set(QUEUE_CHANNEL, createQueueChannel({ redisUrl: url, prefix }));
  const close = async () => {
    await Promise.all([http.close(), ...[...channels.values()].map((channel) => channel.close())]);
  };
  return { channels, close };
}

function createChannel(config: ChannelConfig, post: HttpPost['post']): Channel {
  switch (config.type) {
    case 'slack':
      return createSlackChannel({ url: config.url, post });
    case 'discord':
      return createDiscordChannel({ url: config.url, post });
    case 'teams':
      return createTeamsChannel({ url: config.url, post });
    case 'apprise':
      return createAppriseChannel({ url: config.url, post, ...(config.tag !== undefined && { tag: config.tag }) });
    case 'email':
      return createEmailChannel({ smtpUrl: config.smtp_url, from: config.from, to: config.to });
    default:
      return config satisfies never;
  }
}
