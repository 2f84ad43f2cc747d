import {
  callbackDestination,
  channelDestination,
  type DeadReason,
  parseDestination,
  webhookDestination,
} from '../../domain/notifications/delivery.ts';
import { createMatcher, type Subscription } from '../../domain/notifications/subscription.ts';
import { CALLBACKS_ID } from '../../domain/notifications/webhook.ts';
import { type ReportUnreadable, readStoredObject } from '../../domain/stored.ts';
import { canonicalId } from '../../domain/submission.ts';
import type { ReplayConditions } from '../deliveries/delivery-filter.ts';
import { type MissedEvent, WebhookPauses } from '../deliveries/webhook-pauses.ts';
import { readSubscription } from '../deliveries/webhook-rows.ts';
import { CommittedChanges, type LedgerDatabase } from '../file/ledger-database.ts';

/** The events of one channel of the settings: each event that matches one of the subscriptions, once. */
export type ChannelRoute = {
  name: string;
  subscriptions: readonly Subscription[];
  /** How long the first event of a message waits for others, in milliseconds. */
  gatherMs: number;
};

/** Deliveries to one destination that became dead letters. `callback:` without an origin stands for all callbacks. */
export type DeadLetters = { destination: string; reason: DeadReason; count: number };

type Route = {
  destination: string;
  enabled: boolean;
  gatherMs: number;
  /** The time at which the message that gathers events now is sent, or the latest one was. */
  gathersUntil: number;
  matches: (event: { type: string; metadata: Record<string, unknown> | null }) => boolean;
};

type AddedEvent = { seq: number; type: string; at: number; metadata?: string | null } & Partial<CallbackAddress>;
type CallbackAddress = { submissionId: string | null; callbackUrl: string | null };

/** Writes the deliveries of an event, in the transaction that writes the event. */
export class FanOut {
  readonly pauses: WebhookPauses;
  /** Called with invalid values that are found while an event is written. Readers report those that they find. */
  onUnreadable: ReportUnreadable = () => undefined;
  readonly #db: LedgerDatabase;
  readonly #deadLetters: CommittedChanges<DeadLetters>;
  readonly #waiting: CommittedChanges<string>;
  #channels: Route[] = [];
  /** Undefined: not read since the last change. */
  #webhooks: Route[] | undefined;

  constructor(database: LedgerDatabase) {
    this.#db = database;
    this.#deadLetters = new CommittedChanges(database);
    this.pauses = new WebhookPauses(database);
    this.#waiting = new CommittedChanges(database);
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

  /** Calls `listener` with the destinations of new deliveries once they are on the disk. Returns a function that removes it. */
  onWaiting(listener: (destinations: ReadonlySet<string>) => void): () => void {
    return this.#waiting.onDurable((destinations) => listener(new Set(destinations)));
  }

  /** Adds one delivery for each route that matches, except disabled webhooks. Must be called inside a transaction. */
  add(event: AddedEvent): void {
    const { type, at, metadata = null } = event;
    const routes = [...this.#currentWebhooks().filter(({ enabled }) => enabled), ...this.#channels];
    // Unreadable metadata matches no filter; the event lists it in `unreadable`.
    const subject = { type, metadata: readStoredObject(metadata) ?? null };
    for (const route of routes) {
      if (!route.matches(subject)) continue;
      if (route.destination === CALLBACKS) {
        const destination = this.#callbackOf(event);
        if (destination !== undefined) this.#insert(event, destination, at);
      } else {
        if (at >= route.gathersUntil) route.gathersUntil = at + route.gatherMs;
        this.#insert(event, route.destination, route.gathersUntil);
      }
    }
  }

  /** Adds one delivery for that destination only, and returns its id. Must be called inside a transaction. */
  addFor(event: AddedEvent, destination: string): number {
    return this.#insert(event, destination, event.at);
  }

  /**
   * Adds deliveries of the events since `since` that a webhook, or one origin of the callbacks, missed while it was disabled; `only`
   * those that match. Returns their number. Must be called inside a transaction.
   */
  addMissed(destination: string, since: number, now: number, only: ReplayConditions = {}): number {
    // The events of the pause that do not match are still missed.
    const isAll = Object.values(only).every((condition) => condition === undefined);
    const remove = isAll && parseDestination(destination).kind === 'webhook';
    let count = 0;
    this.#visitMissed(destination, { since, only, remove }, (event, target) => {
      this.#db.run`
        INSERT INTO deliveries (event, destination, state, next_at, created_at, replayed_at)
        VALUES (${event.seq}, ${target}, 'waiting', ${now}, ${event.at}, ${now})`;
      count += 1;
      this.notifyWaiting(target);
    });
    return count;
  }

  /** Returns the number of deliveries that `addMissed` would add. */
  countMissed(destination: string, since: number, only: ReplayConditions = {}): number {
    let count = 0;
    this.#visitMissed(destination, { since, only, remove: false }, () => {
      count += 1;
    });
    return count;
  }

  /** Calls `visit` with each missed event that has no delivery, and its destination. `remove`: see WebhookPauses. */
  #visitMissed(
    destination: string,
    { since, only, remove }: { since: number; only: ReplayConditions; remove: boolean },
    visit: (event: MissedEvent, target: string) => void,
  ): void {
    const parsed = parseDestination(destination);
    if (parsed.kind === 'channel') return;
    const { eventTypes, until = Number.MAX_SAFE_INTEGER } = only;
    const submissionId = only.submissionId && canonicalId(only.submissionId);
    const isCallback = parsed.kind === 'callback' || destination === CALLBACKS;
    const webhookId = parsed.kind === 'callback' ? CALLBACKS_ID : parsed.webhookId;
    const route = this.#currentWebhooks().find((one) => one.destination === webhookDestination(webhookId));
    const visitMatching = (event: MissedEvent) => {
      if (!route?.matches(event) || event.at >= until) return;
      if (eventTypes && !eventTypes.includes(event.type)) return;
      if (submissionId !== undefined && ![only.submissionId, submissionId].includes(event.submissionId ?? '')) return;
      const target = isCallback ? this.#callbackOf(event) : destination;
      if (target === undefined || (parsed.kind === 'callback' && target !== destination)) return;
      const isKnown = this.#db
        .row`SELECT 1 AS found FROM deliveries WHERE event = ${event.seq} AND destination = ${target}`;
      if (!isKnown) visit(event, target);
    };
    this.pauses.replay(webhookId, since, visitMatching, { remove });
  }

  /**
   * Moves the waiting and dead deliveries of an event to another destination; null discards them. Must be called inside a
   * transaction.
   */
  move(event: number, from: string, to: string | null, at: number): void {
    if (to === null) {
      this.#db.run`
        UPDATE deliveries
        SET state = 'discarded', dead_reason = NULL, next_at = NULL, ended_at = coalesce(ended_at, ${at})
        WHERE event = ${event} AND destination = ${from} AND state IN ('waiting', 'dead')`;
      return;
    }
    const { changes } = this.#db.run`
      UPDATE deliveries SET destination = ${to}
      WHERE event = ${event} AND destination = ${from} AND state IN ('waiting', 'dead')`;
    if (changes > 0) this.notifyWaiting(to);
  }

  /** Notes that the destination has a new delivery. Must be called inside a transaction. */
  notifyWaiting(destination: string): void {
    this.#waiting.add(destination);
  }

  /** Notes new dead letters. Must be called inside a transaction. */
  notifyDead(dead: DeadLetters): void {
    if (dead.count > 0) this.#deadLetters.add(dead);
  }

  /** Calls `listener` after every commit that made dead letters, once for each note. */
  onDead(listener: (dead: DeadLetters) => void): void {
    this.#deadLetters.onCommitted((notes) => {
      for (const dead of notes) listener(dead);
    });
  }

  /** Returns whether deliveries to the destination are sent: false for a disabled webhook and an unknown destination. */
  isEnabled(destination: string): boolean {
    const parsed = parseDestination(destination);
    if (parsed.kind === 'channel') return this.#channels.some((route) => route.destination === destination);
    const webhook = parsed.kind === 'callback' ? CALLBACKS : destination;
    return this.#currentWebhooks().some((route) => route.destination === webhook && route.enabled);
  }

  /** Returns the destination of an event's callback; undefined if it has none. Reports an invalid address. */
  #callbackOf({ submissionId, callbackUrl }: Partial<CallbackAddress>): string | undefined {
    if (!callbackUrl) return undefined;
    if (URL.canParse(callbackUrl)) return callbackDestination(callbackUrl);
    this.onUnreadable({ kind: 'submission', id: submissionId ?? '', fields: ['callback_url'] });
    return undefined;
  }

  #insert({ seq, at }: AddedEvent, destination: string, nextAt: number): number {
    const { lastInsertRowid } = this.#db.run`
      INSERT INTO deliveries (event, destination, state, next_at, created_at)
      VALUES (${seq}, ${destination}, 'waiting', ${nextAt}, ${at})`;
    this.notifyWaiting(destination);
    return Number(lastInsertRowid);
  }

  #currentWebhooks(): Route[] {
    this.#webhooks ??= this.#readWebhooks();
    return this.#webhooks;
  }

  #readWebhooks(): Route[] {
    const rows = this.#db.rows<{ webhook_id: string; types: string; metadata: string | null; enabled: number }>(
      'SELECT webhook_id, types, metadata, enabled FROM webhooks ORDER BY id',
    );
    return rows.map((row) => {
      const { unreadable, ...subscription } = readSubscription(row);
      if (unreadable) this.onUnreadable({ kind: 'webhook', id: row.webhook_id, fields: unreadable });
      return {
        destination: webhookDestination(row.webhook_id),
        enabled: row.enabled === 1,
        gatherMs: 0,
        gathersUntil: Number.NEGATIVE_INFINITY,
        matches: createMatcher(subscription),
      };
    });
  }
}

const CALLBACKS = webhookDestination(CALLBACKS_ID);
