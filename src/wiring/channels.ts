import { lookup } from 'node:dns';
import type { Channel } from '../notifications/channels/channel.ts';
import { type ChannelConfig, channelTypeOf } from '../notifications/channels/index.ts';
import type { ChannelDescription } from '../notifications/channels-routes.ts';
import { parseDestination } from '../notifications/delivery.ts';
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
      const { address, receiver } = channelTypeOf(config);
      return {
        name,
        type: config.type,
        address: [maskedAddress(address(config)), receiver?.(config)].filter(Boolean).join(', '),
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
    try {
      const deps = { post: this.#http.post, publicUrl: this.#publicUrl };
      return await channelTypeOf(config).create(config, deps);
    } catch (error) {
      throw new StartError(`channels.${name}.${error instanceof Error ? error.message : error}`);
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
