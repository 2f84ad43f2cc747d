import type { Delivery } from '../deliveries.ts';
import type { SendRequest } from '../request.ts';

/** A channel of the settings, or the queue. */
export type Channel = {
  name: string;
  /** Such as `slack`. A newer server may have more types. */
  type: 'slack' | 'discord' | 'teams' | 'apprise' | 'email' | 'queue' | (string & {});
  /** Address of the channel, with its secret parts masked. */
  address: string;
  /** Subscriptions. The channel receives the events that match at least one of them. */
  routes: { types: string[]; metadata: Record<string, unknown> | null }[];
  /** When an attempt last succeeded and last failed; null: never. */
  last_success_at: string | null;
  last_failure_at: string | null;
  deliveries: { waiting: number; dead: number };
};

/**
 * Channels of a dawatch server. Needs the role admin. Methods throw ApiError or ConnectionError.
 */
export class ChannelRequests {
  readonly #send: SendRequest;

  constructor(send: SendRequest) {
    this.#send = send;
  }

  list(): Promise<{ channels: Channel[] }> {
    return this.#send('GET', '/v1/channels');
  }

  /** Sends a test event to this channel. `deliveries.get` returns the result. */
  test(name: string): Promise<Delivery> {
    return this.#send('POST', `/v1/channels/${encodeURIComponent(name)}/test`);
  }
}
