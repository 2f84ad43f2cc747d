import type Database from 'better-sqlite3';
import {
  callbackDestination,
  channelDestination,
  DeliveryState,
  parseDestination,
  webhookDestination,
} from '../../domain/notifications/delivery.ts';
import { createMatcher, type Subscription } from '../../domain/notifications/subscription.ts';
import { CALLBACKS_ID } from '../../domain/notifications/webhook.ts';
import { type ReportUnreadable, readStored, readStoredObject } from '../../domain/stored.ts';
import { DeadLetterListeners } from '../deliveries/dead-letters.ts';
import { type MissedEvent, WebhookPauses } from '../deliveries/webhook-pauses.ts';
import type { LedgerDatabase } from '../file/ledger-database.ts';

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

type AddedEvent = { seq: number; type: string; at: number; metadata?: string | null } & Partial<CallbackAddress>;
type CallbackAddress = { submissionId: string | null; callbackUrl: string | null };

/** Writes an event's deliveries, in the transaction that wrote the event. */
export class FanOut {
  readonly deadLetters: DeadLetterListeners;
  readonly pauses: WebhookPauses;
  /** Told of what is read here and can't be. */
  onUnreadable: ReportUnreadable = () => undefined;
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #listeners = new Set<(destinations: ReadonlySet<string>) => void>();
  #channels: Route[] = [];
  /** Undefined: not read since the last change. */
  #webhooks: Route[] | undefined;
  #touched = new Set<string>();

  constructor(transactions: LedgerDatabase) {
    this.#sql = prepareStatements(transactions.db);
    this.deadLetters = new DeadLetterListeners(transactions);
    this.pauses = new WebhookPauses(transactions.db);
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
  invalidateWebhooks(): void {
    this.#webhooks = undefined;
  }

  /** Called after every commit that made deliveries wait, with where they go. */
  onWaiting(listener: (destinations: ReadonlySet<string>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Inside a transaction: one delivery for everybody who wants the event; none for a webhook that is disabled. */
  add(event: AddedEvent): void {
    const { type, at, metadata = null } = event;
    const routes = [...this.#currentWebhooks().filter(({ enabled }) => enabled), ...this.#channels];
    // Metadata that can't be read matches no filter; the event lists it in `unreadable`.
    const subject = { type, metadata: readStoredObject(metadata) ?? null };
    for (const route of routes) {
      if (route.destination === CALLBACKS) {
        const destination = route.wants(subject) ? this.#callbackOf(event) : undefined;
        if (destination !== undefined) this.#insert(event, { ...route, destination });
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

  /**
   * Inside a transaction: deliveries of the events that a webhook, or one origin of the callbacks, missed while it was
   * disabled. Gives back how many there are.
   */
  addMissed(destination: string, since: number, now: number): number {
    const parsed = parseDestination(destination);
    if (parsed.kind === 'channel') return 0;
    const isCallback = parsed.kind === 'callback' || destination === CALLBACKS;
    const webhookId = isCallback ? CALLBACKS_ID : (parsed as { webhookId: string }).webhookId;
    const route = this.#currentWebhooks().find((one) => one.destination === webhookDestination(webhookId));
    let count = 0;
    const visit = (event: MissedEvent) => {
      if (!route?.wants(event)) return;
      const to = isCallback ? this.#callbackOf(event) : destination;
      if (to === undefined || (parsed.kind === 'callback' && to !== destination)) return;
      const { changes } = this.#sql.insertMissed.run({ event: event.seq, destination: to, at: event.at, now });
      count += changes;
      if (changes > 0) this.notifyWaiting(to);
    };
    this.pauses.replay(webhookId, since, visit, { forget: parsed.kind === 'webhook' });
    return count;
  }

  /** Inside a transaction: something waits there that did not. */
  notifyWaiting(destination: string): void {
    this.#touched.add(destination);
  }

  /** Whether what waits there is sent: false for a webhook that is disabled. */
  isEnabled(destination: string): boolean {
    const parsed = parseDestination(destination);
    if (parsed.kind === 'channel') return this.#channels.some((route) => route.destination === destination);
    const wanted = parsed.kind === 'callback' ? CALLBACKS : destination;
    return this.#currentWebhooks().some((route) => route.destination === wanted && route.enabled);
  }

  /** Where the callback of an event goes; undefined if nowhere. An address that can't be read is reported. */
  #callbackOf({ submissionId, callbackUrl }: Partial<CallbackAddress>): string | undefined {
    if (!callbackUrl) return undefined;
    if (URL.canParse(callbackUrl)) return callbackDestination(callbackUrl);
    this.onUnreadable({ kind: 'submission', id: submissionId ?? '', fields: ['callback_url'] });
    return undefined;
  }

  #insert(event: AddedEvent, route: Pick<Route, 'destination' | 'enabled'>, nextAt = event.at): number {
    const { destination, enabled } = route;
    const { seq, at } = event;
    const { lastInsertRowid } = enabled
      ? this.#sql.insert.run(seq, destination, DeliveryState.waiting, null, nextAt, at, null)
      : this.#sql.insert.run(seq, destination, DeliveryState.dead, 'endpoint_disabled', null, at, at);
    if (enabled) this.notifyWaiting(destination);
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
    return rows.map((row) => {
      const { unreadable, ...subscription } = subscriptionOf(row);
      if (unreadable) this.onUnreadable({ kind: 'webhook', id: row.webhook_id, fields: unreadable });
      return {
        destination: webhookDestination(row.webhook_id),
        enabled: row.enabled === 1,
        gatherMs: 0,
        gathersUntil: Number.NEGATIVE_INFINITY,
        wants: createMatcher(subscription),
      };
    });
  }

  #announce(committed: boolean): void {
    const touched = this.#touched;
    if (touched.size > 0) this.#touched = new Set();
    // What a transaction that was rolled back read of the webhooks may not be so.
    if (!committed) this.#webhooks = undefined;
    else if (touched.size > 0) for (const listener of this.#listeners) listener(touched);
  }
}

/** What a webhook wants; nothing where that can't be read: to send it everything would be worse. */
export function subscriptionOf(row: {
  types: string;
  metadata: string | null;
}): Subscription & { unreadable?: string[] } {
  const types = readStored(row.types)?.value;
  const metadata = readStoredObject(row.metadata);
  const areTypes = Array.isArray(types) && types.every((type) => typeof type === 'string');
  if (areTypes && metadata !== undefined) return { types, metadata };
  const unreadable = [...(areTypes ? [] : ['types']), ...(metadata === undefined ? ['metadata'] : [])];
  return { types: [], metadata: metadata ?? null, unreadable };
}

const CALLBACKS = webhookDestination(CALLBACKS_ID);

function prepareStatements(db: Database.Database) {
  return {
    insert: db.prepare(`
      -- One event for one destination.
      INSERT INTO deliveries (event, destination, state, dead_reason, next_at, created_at, ended_at)
      VALUES (?, ?, ?, ?, ?, ?, ?)`),
    insertMissed: db.prepare(`
      -- The same later on, unless there is one.
      INSERT INTO deliveries (event, destination, state, next_at, created_at, replayed_at)
      SELECT @event, @destination, 'waiting', @now, @at, @now
      WHERE NOT EXISTS (SELECT 1 FROM deliveries WHERE event = @event AND destination = @destination)`),
    webhooks: db.prepare('SELECT webhook_id, types, metadata, enabled FROM webhooks ORDER BY id'),
  };
}
