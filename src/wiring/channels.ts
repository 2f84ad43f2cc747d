import { lookup } from 'node:dns';
import { createAppriseChannel } from '../notifications/channels/apprise.ts';
import type { Channel } from '../notifications/channels/channel.ts';
import { createDiscordChannel } from '../notifications/channels/discord.ts';
import { createSlackChannel } from '../notifications/channels/slack.ts';
import { createTeamsChannel } from '../notifications/channels/teams.ts';
import type { ChannelDescription } from '../notifications/channels-routes.ts';
import { parseDestination } from '../notifications/delivery.ts';
import type { ChannelConfig } from '../notifications/settings.ts';
import { createHttpPost, type HttpPost } from '../notifications/transport/http-post.ts';
import { StartError } from '../operations/config/start-error.ts';
import type { Config } from './settings.ts';

/** The channel that adds every event to a queue, if Redis is configured. */
const QUEUE_CHANNEL = 'queue';

const MASK = '********';

type Configured = { config: ChannelConfig; channel: Channel };

/** `address`: without secrets. */
type QueueChannel = { channel: Channel; address: string };

type ChannelsDeps = {
  config: Config;
  queue: QueueChannel | undefined;
  version: string;
  now: () => number;
};

/** The configured channels by name. Their addresses are set by the operator, so all are allowed. */
export class Channels {
  readonly #http: HttpPost;
  readonly #queue: QueueChannel | undefined;
  readonly #publicUrl: string | undefined;
  readonly #configured = new Map<string, Configured>();

  private constructor(deps: ChannelsDeps) {
    // The operator's host names are resolved by the system, including its search domains.
    this.#http = createHttpPost({ guard: undefined, version: deps.version, now: deps.now, lookup });
    this.#queue = deps.queue;
    this.#publicUrl = deps.config.server.public_url;
  }

  /** Creates all channels of the settings. Throws StartError. */
  static async open(deps: ChannelsDeps): Promise<Channels> {
    const channels = new Channels(deps);
    for (const [name, config] of Object.entries(deps.config.channels))
      channels.#configured.set(name, { config, channel: await channels.#create(name, config) });
    return channels;
  }

  /**
   * Sends a GET request to an address of the operator, with the limits and timeouts of the
   * channels.
   */
  get httpGet(): HttpPost['get'] {
    return this.#http.get;
  }

  /** Describes each channel without the secrets of its address. */
  describe(routes: Config['routes']): ChannelDescription[] {
    const configured = [...this.#configured].map(([name, { config }]): ChannelDescription => {
      const own = routes.filter((route) => route.channels.includes(name));
      const address = maskedAddress(config.type === 'email' ? config.smtp_url : config.url);
      return {
        name,
        type: config.type,
        address: config.type === 'email' ? `${address}, to ${config.to.join(', ')}` : address,
        routes: own.map(({ types, metadata = null }) => ({ types, metadata })),
      };
    });
    if (!this.#queue) return configured;
    const { address } = this.#queue;
    const everything = [{ types: ['*'], metadata: null }];
    return [
      ...configured,
      { name: QUEUE_CHANNEL, type: QUEUE_CHANNEL, address, routes: everything },
    ];
  }

  get names(): string[] {
    return [...this.#configured.keys(), ...(this.#queue ? [QUEUE_CHANNEL] : [])];
  }

  get(name: string): Channel | undefined {
    return name === QUEUE_CHANNEL ? this.#queue?.channel : this.#configured.get(name)?.channel;
  }

  /**
   * Returns the kind of a destination, a label with few values. A channel that is no longer
   * configured counts as a queue.
   */
  kindOf(destination: string): string {
    const parsed = parseDestination(destination);
    return parsed.kind === 'channel'
      ? (this.#configured.get(parsed.name)?.config.type ?? QUEUE_CHANNEL)
      : parsed.kind;
  }

  /** All kinds of destinations. */
  get kinds(): ReadonlySet<string> {
    const types = [...this.#configured.values()].map(({ config }) => config.type);
    return new Set(['webhook', 'callback', QUEUE_CHANNEL, ...types]);
  }

  async close(): Promise<void> {
    const channels = [...this.#configured.values()].map(({ channel }) => channel);
    await Promise.all([
      this.#http.close(),
      this.#queue?.channel.close(),
      ...channels.map((channel) => channel.close()),
    ]);
  }

  async #create(name: string, config: ChannelConfig): Promise<Channel> {
    const options = { post: this.#http.post, publicUrl: this.#publicUrl };
    switch (config.type) {
      case 'slack':
        return createSlackChannel({ url: config.url, ...options });
      case 'discord':
        return createDiscordChannel({ url: config.url, ...options });
      case 'teams':
        return createTeamsChannel({ url: config.url, ...options });
      case 'apprise':
        return createAppriseChannel({
          url: config.url,
          ...options,
          ...(config.tag !== undefined && { tag: config.tag }),
        });
      case 'email': {
        // Loaded on demand, because importing it would slow every start.
        const { createEmailChannel } = await import('../notifications/channels/email.ts');
        try {
          return createEmailChannel({ ...config, publicUrl: this.#publicUrl });
        } catch (error) {
          const reason = error instanceof Error ? error.message : error;
          throw new StartError(`channels.${name}.tls_ca_file is unusable: ${reason}`);
        }
      }
      default:
        return config satisfies never;
    }
  }
}

/** Returns an address with its user, password, path and query masked: each may be a secret. */
function maskedAddress(address: string): string {
  const url = URL.parse(address);
  if (!url) return MASK;
  const user = url.username === '' && url.password === '' ? '' : `${MASK}@`;
  const path = url.pathname.replace(/^\//, '') === '' && url.search === '' ? '' : `/${MASK}`;
  return `${url.protocol}//${user}${url.host}${path}`;
}
