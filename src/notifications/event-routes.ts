import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { DamagedRowError, parseStored, storedObject } from '../lib/stored.ts';
import {
  callbackDestination,
  channelDestination,
  parseDestination,
  webhookDestination,
} from './delivery.ts';
import { CALLBACKS_ID, createMatcher, type Subscription } from './webhook.ts';

/**
 * The events of one channel of the settings: each event that matches one of the subscriptions,
 * once.
 */
export type ChannelRoute = {
  name: string;
  subscriptions: readonly Subscription[];
  /** How long the first event of a message waits for others, in milliseconds. */
  gatherMs: number;
};

export type EventRoute = {
  /** CALLBACKS stands for the address of the submission, see `callbackOf`. */
  destination: string;
  enabled: boolean;
  gatherMs: number;
  /** The time at which the message that gathers events now is sent, or the latest one was. */
  gathersUntil: number;
  matches: (event: { type: string; metadata: Record<string, unknown> | null }) => boolean;
};

export type CallbackAddress = { submissionId: string | null; callbackUrl: string | null };

/** The destination of the webhook of all callbacks. */
export const CALLBACKS = webhookDestination(CALLBACKS_ID);

/**
 * Which destinations get an event: the webhooks of the ledger and the channels of the settings.
 * Throws LedgerError.
 */
export class EventRoutes {
  readonly #db: LedgerDatabase;
  #channels: EventRoute[] = [];
  /** Undefined: not read since the last change. */
  #webhooks: EventRoute[] | undefined;

  constructor(database: LedgerDatabase) {
    this.#db = database;
    database.onEnd((committed) => {
      if (!committed) this.invalidateWebhooks();
    });
  }

  /** Replaces the channels. Deliveries that wait for a removed channel are kept. */
  setChannels(channels: readonly ChannelRoute[]): void {
    this.#channels = channels.map(({ name, subscriptions, gatherMs }) => {
      const matchers = subscriptions.map(createMatcher);
      return {
        destination: channelDestination(name),
        enabled: true,
        gatherMs,
        gathersUntil: Number.NEGATIVE_INFINITY,
        matches: (event) => matchers.some((matches) => matches(event)),
      };
    });
  }

  /** Must be called when webhooks have changed, so that they are read again. */
  invalidateWebhooks(): void {
    this.#webhooks = undefined;
  }

  /**
   * Returns the routes that an event matches, also those of disabled webhooks. `metadata`: the text
   * of its submission.
   */
  matching({ type, metadata = null }: { type: string; metadata?: string | null }): EventRoute[] {
    const subject = { type, metadata: storedObject(metadata, 'a submission', 'metadata') };
    return [...this.#currentWebhooks(), ...this.#channels].filter((route) =>
      route.matches(subject),
    );
  }

  /** Returns the route of a webhook, even of a disabled one; undefined if it does not exist. */
  ofWebhook(webhookId: string): EventRoute | undefined {
    const destination = webhookDestination(webhookId);
    return this.#currentWebhooks().find((route) => route.destination === destination);
  }

  /**
   * Returns whether deliveries to the destination are sent: false for a disabled webhook and an
   * unknown destination.
   */
  isEnabled(destination: string): boolean {
    const parsed = parseDestination(destination);
    if (parsed.kind === 'channel')
      return this.#channels.some((route) => route.destination === destination);
    return (
      this.ofWebhook(parsed.kind === 'callback' ? CALLBACKS_ID : parsed.webhookId)?.enabled ?? false
    );
  }

  /** Returns the destination of an event's callback; undefined if it has none. */
  callbackOf({ callbackUrl }: Partial<CallbackAddress>): string | undefined {
    return callbackUrl ? callbackDestination(callbackUrl) : undefined;
  }

  #currentWebhooks(): EventRoute[] {
    this.#webhooks ??= this.#readWebhooks();
    return this.#webhooks;
  }

  #readWebhooks(): EventRoute[] {
    const rows = this.#db.rows<{
      id: string;
      types: string;
      metadata: string | null;
      enabled: number;
    }>('SELECT webhook_id AS id, types, metadata, enabled FROM webhooks ORDER BY id');
    return rows.map((row) => ({
      destination: webhookDestination(row.id),
      enabled: row.enabled === 1,
      gatherMs: 0,
      gathersUntil: Number.NEGATIVE_INFINITY,
      matches: createMatcher(readSubscription(row)),
    }));
  }
}

/** Returns the events that a webhook subscribes to. Throws DamagedRowError. */
export function readSubscription({
  id,
  ...row
}: {
  id: string;
  types: string;
  metadata: string | null;
}): Subscription {
  const name = `the webhook ${id}`;
  const types = parseStored(row.types, name, 'types');
  if (!Array.isArray(types)) throw new DamagedRowError(name, 'types');
  return { types, metadata: storedObject(row.metadata, name, 'metadata') };
}
