import { randomUUID } from 'node:crypto';
import { CommittedChanges, type LedgerDatabase } from '../ledger/ledger-database.ts';
import { DamagedRowError, parseStored, storedObject } from '../lib/json.ts';
import {
  type AlertEventType,
  type SubmissionEventType,
  TestEventType,
  type UpstreamEventType,
} from '../submissions/event-types.ts';
import type { SubmissionRow } from '../submissions/submission-queries.ts';
import {
  CALLBACKS,
  CALLBACKS_ID,
  callbackDestination,
  channelDestination,
  createMatcher,
  type DeadLetters,
  parseDestination,
  type Subscription,
  webhookDestination,
} from './delivery.ts';
import type { Alert } from './event-body.ts';

/** Each event that matches one of the subscriptions is sent once. */
export type ChannelRoute = {
  name: string;
  subscriptions: readonly Subscription[];
  /** How long the first event of a message waits for others, in milliseconds. */
  gatherMs: number;
};

type EventRoute = {
  /** CALLBACKS stands for the address of the submission. */
  destination: string;
  /** Of a webhook, by its operator. */
  description: string | null;
  enabled: boolean;
  gatherMs: number;
  /** The time at which the message that gathers events now is sent, or the latest one was. */
  gathersUntil: number;
  matches: (event: { type: string; metadata: Record<string, unknown> | null }) => boolean;
};

/** Webhooks of the ledger and channels of the settings. Throws LedgerError. */
export class EventRoutes {
  readonly #db: LedgerDatabase;
  #channels: EventRoute[] = [];
  #webhooks: EventRoute[] | undefined;

  constructor(database: LedgerDatabase) {
    this.#db = database;
    database.onEnd((committed) => {
      if (!committed) this.invalidateWebhooks();
    });
  }

  /** Replaces the channels. Deliveries that wait for a removed channel become dead letters. */
  setChannels(channels: readonly ChannelRoute[]): void {
    this.#channels = channels.map(({ name, subscriptions, gatherMs }) => {
      const matchers = subscriptions.map(createMatcher);
      return {
        destination: channelDestination(name),
        description: null,
        enabled: true,
        gatherMs,
        gathersUntil: Number.NEGATIVE_INFINITY,
        matches: (event) => matchers.some((matches) => matches(event)),
      };
    });
  }

  invalidateWebhooks(): void {
    this.#webhooks = undefined;
  }

  /** Enabled webhooks, CALLBACKS among them, and channels. */
  enabled(): Pick<EventRoute, 'destination' | 'description'>[] {
    return [...this.#currentWebhooks(), ...this.#channels].filter(({ enabled }) => enabled);
  }

  /** Includes routes of disabled webhooks. `metadata`: the text of its submission. */
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

  /** False for a disabled webhook and an unknown destination. */
  isEnabled(destination: string): boolean {
    const parsed = parseDestination(destination);
    if (parsed.kind === 'channel')
      return this.#channels.some((route) => route.destination === destination);
    return (
      this.ofWebhook(parsed.kind === 'callback' ? CALLBACKS_ID : parsed.webhookId)?.enabled ?? false
    );
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
      description: string;
      enabled: number;
    }>('SELECT webhook_id AS id, types, metadata, description, enabled FROM webhooks ORDER BY id');
    return rows.map((row) => ({
      destination: webhookDestination(row.id),
      description: row.description,
      enabled: row.enabled === 1,
      gatherMs: 0,
      gathersUntil: Number.NEGATIVE_INFINITY,
      matches: createMatcher(readSubscription(row)),
    }));
  }
}

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

type AddedEvent = {
  seq: number;
  type: string;
  at: number;
  metadata?: string | null;
  callbackUrl?: string | null;
};

/**
 * Writes events and their deliveries in the transaction of the change that they report, inside
 * which each method must be called. Listeners are notified after the commit. Throws LedgerError.
 */
export class Outbox {
  readonly #db: LedgerDatabase;
  readonly #routes: EventRoutes;
  readonly #dead: CommittedChanges<DeadLetters>;
  readonly #waiting: CommittedChanges<string>;
  readonly added: CommittedChanges<number>;

  constructor(
    database: LedgerDatabase,
    { routes, dead }: { routes: EventRoutes; dead: CommittedChanges<DeadLetters> },
  ) {
    this.#db = database;
    this.#routes = routes;
    this.#dead = dead;
    this.#waiting = new CommittedChanges(database);
    this.added = new CommittedChanges(database);
  }

  addSubmissionEvent(type: SubmissionEventType, row: SubmissionRow, at: number): void {
    const { id: submission, version, upstream, metadata, callbackUrl } = row;
    const seq = this.#add({ type, at, upstream, submission, version });
    this.#addDeliveries({ seq, type, at, metadata, callbackUrl });
  }

  addUpstreamEvent(
    type: UpstreamEventType,
    { upstream, reason }: { upstream: string; reason: string },
    at: number,
  ): void {
    const seq = this.#add({ type, at, upstream, detail: JSON.stringify({ reason }) });
    this.#addDeliveries({ seq, type, at });
  }

  /** The event of a muted alert has no deliveries. */
  addAlertEvent(type: AlertEventType, alert: Alert, at: number): void {
    const seq = this.#add({ type, at, detail: JSON.stringify(alert), alert: alert.id });
    if (!alert.muted) this.#addDeliveries({ seq, type, at });
  }

  /** For one destination; returns the delivery's id. A callback needs an address. */
  addTestEvent(
    test: { webhookId: string; callbackUrl?: string } | { channel: string },
    at: number,
  ): number | undefined {
    const [type, destination] =
      'channel' in test
        ? [TestEventType.channel, channelDestination(test.channel)]
        : [
            TestEventType.webhook,
            test.callbackUrl === undefined
              ? webhookDestination(test.webhookId)
              : callbackDestination(test.callbackUrl),
          ];
    if (!this.#routes.isEnabled(destination)) return undefined;
    const seq = this.#add({ type, at, detail: JSON.stringify(test) });
    return this.#addDelivery({ seq, at }, destination, at);
  }

  /** `submission`, `version`: the row of the history. Returns the sequence number. */
  #add(event: {
    type: string;
    at: number;
    upstream?: string;
    submission?: number;
    version?: number;
    detail?: string;
    alert?: number;
  }): number {
    const { type, at, upstream = null, submission = null, version = null } = event;
    const { detail = null, alert = null } = event;
    // Random instead of counted: after a restored backup, a counted id would name another event.
    const id = `evt_${randomUUID().replaceAll('-', '')}`;
    const { lastInsertRowid } = this.#db.run`
      INSERT INTO outbox (id, type, at, upstream, submission, history_seq, detail, alert)
      VALUES (${id}, ${type}, ${at}, ${upstream}, ${submission},
              (SELECT seq FROM history WHERE submission = ${submission} AND version = ${version}), ${detail}, ${alert})`;
    const seq = Number(lastInsertRowid);
    this.added.add(seq);
    return seq;
  }

  /** Adds one delivery for each route that the event matches; a dead letter if it is disabled. */
  #addDeliveries(event: AddedEvent): void {
    const { at, callbackUrl } = event;
    const callback = callbackUrl ? callbackDestination(callbackUrl) : undefined;
    for (const route of this.#routes.matching(event)) {
      const destination = route.destination === CALLBACKS ? callback : route.destination;
      if (destination === undefined) continue;
      if (!route.enabled) this.#addDeadLetter(event, destination);
      else {
        if (at >= route.gathersUntil) route.gathersUntil = at + route.gatherMs;
        this.#addDelivery(event, destination, route.gathersUntil);
      }
    }
  }

  #addDeadLetter({ seq, at }: AddedEvent, destination: string): void {
    const reason = 'endpoint_disabled';
    this.#db.run`
      INSERT INTO deliveries (event, destination, state, dead_reason, created_at, waiting_since, ended_at)
      VALUES (${seq}, ${destination}, 'dead', ${reason}, ${at}, ${at}, ${at})`;
    this.#dead.add({ destination, reason, count: 1 });
  }

  /** `nextAt`: the time of the first attempt. Returns the id of the delivery. */
  #addDelivery(
    { seq, at }: { seq: number; at: number },
    destination: string,
    nextAt: number,
  ): number {
    const { lastInsertRowid } = this.#db.run`
      INSERT INTO deliveries (event, destination, state, next_at, created_at, waiting_since)
      VALUES (${seq}, ${destination}, 'waiting', ${nextAt}, ${at}, ${at})`;
    this.notifyWaiting(destination);
    return Number(lastInsertRowid);
  }

  /** Those that wait are due at the new URL at once; null discards them. */
  moveCallbacks(
    { id, callbackUrl }: { id: number; callbackUrl: string | null },
    to: string | null,
    at: number,
  ): void {
    if (callbackUrl === null || to === callbackUrl) return;
    const from = callbackDestination(callbackUrl);
    const unsent = `event IN (SELECT seq FROM outbox WHERE submission = @id) AND destination = @from
      AND state IN ('waiting', 'dead')`;
    if (to === null) {
      this.#db.run(
        `UPDATE deliveries INDEXED BY deliveries_by_event
         SET state = 'discarded', dead_reason = NULL, next_at = NULL, ended_at = coalesce(ended_at, @at)
         WHERE ${unsent}`,
        { id, from, at },
      );
      return;
    }
    const destination = callbackDestination(to);
    const { changes } = this.#db.run(
      `UPDATE deliveries INDEXED BY deliveries_by_event SET destination = @destination, next_at = iif(state = 'waiting', @at, NULL)
       WHERE ${unsent}`,
      { id, from, destination, at },
    );
    if (changes > 0) this.notifyWaiting(destination);
  }

  notifyWaiting(destination: string): void {
    this.#waiting.add(destination);
  }

  /** Calls `listener` after the commit. Returns a function that removes it. */
  onWaiting(listener: (destinations: ReadonlySet<string>) => void): () => void {
    return this.#waiting.onCommitted((destinations) => listener(new Set(destinations)));
  }
}
