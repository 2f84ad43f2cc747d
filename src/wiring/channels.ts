import { lookup } from 'node:dns';
import { isDeepStrictEqual } from 'node:util';
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

type Configured = { config: ChannelConfig; channel: Channel };

/** The configured channels by name. Their addresses are set by the operator, so all are allowed. */
export class Channels {
  readonly #http: HttpPost;
  readonly #queue: Channel | undefined;
  #configured: ReadonlyMap<string, Configured> = new Map();

  private constructor(deps: { version: string; now: () => number; queue: Channel | undefined }) {
    const guard = createAddressGuard({ allow: ['0.0.0.0/0', '::/0'] });
    // The operator's host names are resolved by the system, including its search domains.
    this.#http = createHttpPost({ guard, version: deps.version, now: deps.now, lookup });
    this.#queue = deps.queue;
  }

  /** Loads the modules for mail and queues on demand, because importing them would slow every start. */
  static async open(deps: { config: Config; version: string; now: () => number }): Promise<Channels> {
    const { url, prefix } = deps.config.redis;
    let queue: Channel | undefined;
    if (url !== undefined) {
      const { createQueueChannel } = await import('../notify/channels/queue.ts');
      queue = createQueueChannel({ redisUrl: url, prefix });
    }
    const channels = new Channels({ ...deps, queue });
    (await channels.prepare(deps.config.channels))();
    return channels;
  }

  get names(): string[] {
    return [...this.#configured.keys(), ...(this.#queue ? [QUEUE_CHANNEL] : [])];
  }

  get(name: string): Channel | undefined {
    return name === QUEUE_CHANNEL ? this.#queue : this.#configured.get(name)?.channel;
  }

  /** Returns the kind of a destination, a label with few values. A channel that is no longer configured counts as a queue. */
  kindOf(destination: string): string {
    const parsed = parseDestination(destination);
    return parsed.kind === 'channel' ? (this.#configured.get(parsed.name)?.config.type ?? QUEUE_CHANNEL) : parsed.kind;
  }

  /** All kinds of destinations. */
  get kinds(): ReadonlySet<string> {
    const types = [...this.#configured.values()].map(({ config }) => config.type);
    return new Set(['webhook', 'callback', QUEUE_CHANNEL, ...types]);
  }

  /**
   * Creates the channels that differ from the current ones. The returned function replaces the channels, and returns the names of
   * the new ones and the replaced channels, which are still open.
   */
  async prepare(configs: Config['channels']): Promise<() => { changed: string[]; replaced: Channel[] }> {
    const next = new Map<string, Configured>();
    for (const [name, config] of Object.entries(configs)) {
      const known = this.#configured.get(name);
      const isSame = known !== undefined && isDeepStrictEqual(known.config, config);
      next.set(name, isSame ? known : { config, channel: await createChannel(config, this.#http.post) });
    }
    return () => {
      const before = this.#configured;
      this.#configured = next;
      return {
        changed: [...next].filter(([name, one]) => before.get(name) !== one).map(([name]) => name),
        replaced: [...before].filter(([name, one]) => next.get(name) !== one).map(([, { channel }]) => channel),
      };
    };
  }

  async close(): Promise<void> {
    const channels = [...this.#configured.values()].map(({ channel }) => channel);
    await Promise.all([this.#http.close(), this.#queue?.close(), ...channels.map((channel) => channel.close())]);
  }
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
