import type Database from 'better-sqlite3';
import {
  callbackDestination,
  channelDestination,
  DeliveryState,
  parseDestination,
  webhookDestination,
} from '../monitor/delivery.ts';
import { createMatcher, type Subscription } from '../monitor/subscription.ts';
import { CALLBACKS_ID } from '../monitor/webhook.ts';
import { DeadLetterNews } from './dead-letters.ts';
import type { Transactions } from './transactions.ts';

/** What goes to one channel of the settings: an event that one of these subscriptions wants, once. */
export type ChannelRoute = {
  name: string;
  subscriptions: readonly Subscription[];
  /** How long the first event waits for others that are told with it. */
  gatherMs: number;
};

type Route = {
  destination: string;
  enabled: boolean;
  gatherMs: number;
  /** When the message goes out that is being gathered, if one is. */
  gathersUntil: number;
  wants: (event: { type: string; metadata: Record<string, unknown> | null }) => boolean;
};

type AddedEvent = { seq: number; type: string; at: number; metadata?: string | null; callbackUrl?: string | null };

/** Writes an event's deliveries, in the transaction that wrote the event. */
export class FanOut {
  readonly deadLetters: DeadLetterNews;
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #listeners = new Set<(destinations: ReadonlySet<string>) => void>();
  #channels: Route[] = [];
  /** Undefined: not read since the last change. */
  #webhooks: Route[] | undefined;
  #touched = new Set<string>();

  constructor(transactions: Transactions) {
    this.#sql = prepareStatements(transactions.db);
    this.deadLetters = new DeadLetterNews(transactions);
    transactions.onEnd((committed) => this.#announce(committed));
  }

  /** From now on. What waits for a channel that is gone stays. */
  setChannels(channels: readonly ChannelRoute[]): void {
    this.#channels = channels.map(({ name, subscriptions, gatherMs }) => {
      const matchers = subscriptions.map(createMatcher);
      const wants: Route['wants'] = (event) => matchers.some((matches) => matches(event));
      return {
        destination: channelDestination(name),
        enabled: true,
        gatherMs,
        gathersUntil: Number.NEGATIVE_INFINITY,
        wants,
      };
    });
  }

  /** The webhooks are other ones than before, or may be. */
  forgetWebhooks(): void {
    this.#webhooks = undefined;
  }

  /** Called after every commit that made deliveries wait, with where they go. */
  onWaiting(listener: (destinations: ReadonlySet<string>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Inside a transaction: one delivery for everybody who wants the event. */
  add(event: AddedEvent): void {
    const { type, at, metadata = null, callbackUrl = null } = event;
    const routes = [...this.#currentWebhooks(), ...this.#channels];
    const subject = { type, metadata: metadata === null ? null : JSON.parse(metadata) };
    for (const route of routes) {
      if (route.destination === CALLBACKS) {
        if (callbackUrl !== null && route.wants(subject))
          this.#insert(event, { ...route, destination: callbackDestination(callbackUrl) });
      } else if (route.wants(subject)) {
        if (at >= route.gathersUntil) route.gathersUntil = at + route.gatherMs;
        this.#insert(event, route, route.gathersUntil);
      }
    }
  }

  /** Inside a transaction: one delivery for that webhook alone. Gives back its number. */
  addForWebhook(event: AddedEvent, webhookId: string): number {
    const destination = webhookDestination(webhookId);
    return this.#insert(event, { destination, enabled: true });
  }

  /** Inside a transaction: something waits there that did not. */
  touch(destination: string): void {
    this.#touched.add(destination);
  }

  /** Whether what waits there is sent: false for a webhook that is disabled. */
  isEnabled(destination: string): boolean {
    const parsed = parseDestination(destination);
    if (parsed.kind === 'channel') return this.#channels.some((route) => route.destination === destination);
    const wanted = parsed.kind === 'callback' ? CALLBACKS : destination;
    return this.#currentWebhooks().some((route) => route.destination === wanted && route.enabled);
  }

  #insert(event: AddedEvent, route: Pick<Route, 'destination' | 'enabled'>, nextAt = event.at): number {
    const { destination, enabled } = route;
    const { seq, at } = event;
    const { lastInsertRowid } = enabled
      ? this.#sql.insert.run(seq, destination, DeliveryState.waiting, null, nextAt, at, null)
      : this.#sql.insert.run(seq, destination, DeliveryState.dead, 'endpoint_disabled', null, at, at);
    if (enabled) this.touch(destination);
    else this.deadLetters.add(destination, 'endpoint_disabled', 1);
    return Number(lastInsertRowid);
  }

  #currentWebhooks(): Route[] {
    this.#webhooks ??= this.#readWebhooks();
    return this.#webhooks;
  }

  #readWebhooks(): Route[] {
    const rows = this.#sql.webhooks.all() as {
      webhook_id: string;
      types: string;
      metadata: string | null;
      enabled: number;
    }[];
    return rows.map((row) => ({
      destination: webhookDestination(row.webhook_id),
      enabled: row.enabled === 1,
      gatherMs: 0,
      gathersUntil: Number.NEGATIVE_INFINITY,
      wants: createMatcher({
        types: JSON.parse(row.types),
        metadata: row.metadata === null ? null : JSON.parse(row.metadata),
      }),
    }));
  }

  #announce(committed: boolean): void {
    const touched = this.#touched;
    if (touched.size > 0) this.#touched = new Set();
    // What a transaction that was rolled back read of the webhooks may not be so.
    if (!committed) this.#webhooks = undefined;
    else if (touched.size > 0) for (const listener of this.#listeners) listener(touched);
  }
}

const CALLBACKS = webhookDestination(CALLBACKS_ID);

function prepareStatements(db: Database.Database) {
  return {
    insert: db.prepare(`
      -- One event for one destination.
      INSERT INTO deliveries (event, destination, state, dead_reason, next_at, created_at, ended_at)
      VALUES (?, ?, ?, ?, ?, ?, ?)`),
    webhooks: db.prepare('SELECT webhook_id, types, metadata, enabled FROM webhooks ORDER BY id'),
  };
}
