import { randomUUID } from 'node:crypto';
import type { CommittedChanges, LedgerDatabase } from '../ledger/ledger-database.ts';
import { takePage } from '../ledger/page.ts';
import { DurationHistogram } from '../lib/duration-histogram.ts';
import { storedObject, storedOneOf, storedTime } from '../lib/json.ts';
import type { WebhookEndpoint } from './channels/webhook.ts';
import {
  CALLBACKS_ID,
  type DeadLetters,
  type DeliveryAttempt,
  DISABLED_REASONS,
  type DisabledReason,
  type NewWebhook,
  type Webhook,
  type WebhookDay,
  type WebhookPatch,
  webhookDestination,
} from './delivery.ts';
import { type EventRoutes, type Outbox, readSubscription } from './outbox.ts';
import type { Receivers } from './receivers-store.ts';

export type WebhookRow = Omit<
  Webhook,
  'types' | 'metadata' | 'enabled' | 'headerNames' | 'lastDay'
> & {
  position: number;
  types: string;
  metadata: string | null;
  enabled: number;
  /** JSON. */
  headers: string;
};

const SELECT_WEBHOOK = `
  SELECT id AS position, webhook_id AS id, url, types, metadata, description, headers, enabled,
         disabled_reason AS disabledReason, created_at AS createdAt, updated_at AS updatedAt,
         (SELECT failing_since FROM receivers WHERE destination = 'webhook:' || webhook_id) AS failingSince
  FROM webhooks`;

function toWebhook(
  { position: _, headers, ...row }: WebhookRow,
  lastDay: Webhook['lastDay'],
): Webhook {
  const name = `the webhook ${row.id}`;
  const { disabledReason, createdAt, updatedAt } = row;
  return {
    ...row,
    ...readSubscription(row),
    headerNames: Object.keys(storedHeaders({ id: row.id, headers })),
    lastDay,
    enabled: row.enabled === 1,
    disabledReason:
      disabledReason && storedOneOf(DISABLED_REASONS, disabledReason, name, 'disabled_reason'),
    createdAt: storedTime(createdAt, name, 'created_at'),
    updatedAt: storedTime(updatedAt, name, 'updated_at'),
  };
}

function storedHeaders({ id, headers }: Pick<WebhookRow, 'id' | 'headers'>) {
  return storedObject(headers, `the webhook ${id}`, 'headers') as Record<string, string>;
}

/** Each event writes at most one delivery per webhook, in the transaction that it reports. */
export const MAX_WEBHOOKS = 100;

export class Webhooks {
  readonly #db: LedgerDatabase;
  readonly #routes: EventRoutes;
  readonly #outbox: Outbox;
  readonly #dead: CommittedChanges<DeadLetters>;
  readonly #receivers: Receivers;
  readonly #stats: WebhookStats;

  /** `dead`: gets the dead letters of webhooks that are disabled. */
  constructor(
    database: LedgerDatabase,
    deps: {
      routes: EventRoutes;
      outbox: Outbox;
      dead: CommittedChanges<DeadLetters>;
      receivers: Receivers;
    },
  ) {
    this.#db = database;
    this.#routes = deps.routes;
    this.#outbox = deps.outbox;
    this.#dead = deps.dead;
    this.#receivers = deps.receivers;
    this.#stats = new WebhookStats(database);
  }

  /** Whether there are MAX_WEBHOOKS already. The webhook of the callbacks does not count. */
  isFull(): boolean {
    const count = this.#db
      .value<number>`SELECT count(*) FROM webhooks WHERE webhook_id <> ${CALLBACKS_ID}`;
    return (count ?? 0) >= MAX_WEBHOOKS;
  }

  create(webhook: NewWebhook, secret: string, now: number): Webhook {
    return this.#change(() =>
      this.#insert(`wh_${randomUUID().replaceAll('-', '')}`, webhook, secret, now),
    );
  }

  ensureCallbacks(makeSecret: () => string, now: number): void {
    if (this.get(CALLBACKS_ID, now)) return;
    const webhook: NewWebhook = {
      url: null,
      types: ['submission.*'],
      metadata: null,
      description: 'the callback_url of submissions',
      enabled: true,
    };
    this.#change(() => this.#insert(CALLBACKS_ID, webhook, makeSecret(), now));
  }

  get(id: string, now: number): Webhook | undefined {
    const row = this.#find(id);
    return row && this.#toWebhook(row, now);
  }

  /** Returns webhooks, newest first, and the position to continue `before`; null at the end. */
  list(query: { limit: number; before?: number | undefined; now: number }): {
    webhooks: Webhook[];
    nextBefore: number | null;
  } {
    const { limit, before = Number.MAX_SAFE_INTEGER, now } = query;
    const { page, hasMore } = takePage(
      this.#db.iterate<WebhookRow>(LIST, before, limit + 1),
      limit,
    );
    const webhooks = page.map((row) => this.#toWebhook(row, now));
    return { webhooks, nextBefore: hasMore ? (page.at(-1)?.position ?? null) : null };
  }

  /** Returns where and how to send; undefined if there is no such webhook or it is disabled. */
  endpoint(id: string, now: number): WebhookEndpoint | undefined {
    const row = this.#db.row<WebhookRow & WebhookSecrets>(ENDPOINT, id);
    if (row?.enabled !== 1) return undefined;
    const { url, secret, oldSecret, oldSecretUntil } = row;
    const isOldValid = oldSecret !== null && (oldSecretUntil ?? 0) > now;
    return {
      url,
      headers: storedHeaders(row),
      secrets: isOldValid ? [secret, oldSecret] : [secret],
    };
  }

  /** undefined: no such webhook. Disabling makes dead letters; a new address gets them at once. */
  update(id: string, patch: WebhookPatch, now: number): Webhook | undefined {
    return this.#change(() => {
      const before = this.get(id, now);
      if (!before) return undefined;
      const after = { ...before, ...patch };
      const { url, types, metadata, description, enabled } = after;
      // An operator who disables the webhook has acknowledged an earlier reason.
      const reason = enabled ? null : patch.enabled === false ? 'operator' : before.disabledReason;
      this.#db.run(
        `UPDATE webhooks
         SET url = @url, types = @types,
             metadata = @metadata, headers = coalesce(@headers, headers), description = @description, enabled = @enabled, disabled_reason = @reason,
             updated_at = @now
         WHERE webhook_id = @id`,
        {
          id,
          url,
          headers: patch.headers === undefined ? null : JSON.stringify(patch.headers),
          description,
          reason,
          now,
          ...toColumns({ types, metadata, enabled }),
        },
      );
      if (!enabled && before.enabled) this.#pause(id, now);
      const destination = webhookDestination(id);
      // Results before a change of the address, or before the webhook was enabled, do not count.
      if (url !== before.url || (enabled && !before.enabled)) this.#receivers.forget(destination);
      if (url !== before.url) {
        this.#db.run`
          UPDATE deliveries SET next_at = ${now}
          WHERE destination = ${destination} AND state = 'waiting' AND next_at > ${now}`;
        this.#outbox.notifyWaiting(destination);
      }
      return this.get(id, now);
    });
  }

  /** The old secret also signs until `oldUntil`. undefined: no such webhook. */
  rotate(
    id: string,
    secret: string,
    { oldUntil, now }: { oldUntil: number; now: number },
  ): Webhook | undefined {
    return this.#change(() => {
      this.#db.run`
        UPDATE webhooks
        SET old_secret = iif(${oldUntil > now ? 1 : 0}, secret, NULL), old_secret_until = ${oldUntil}, secret = ${secret}
        WHERE webhook_id = ${id}`;
      return this.get(id, now);
    });
  }

  /** Discards waiting deliveries and dead letters. Returns false if there is no such webhook. */
  delete(id: string, now: number): boolean {
    return this.#change(() => {
      const destination = webhookDestination(id);
      this.#db.run`
        UPDATE deliveries
        SET state = 'discarded', dead_reason = NULL, next_at = NULL, ended_at = coalesce(ended_at, ${now})
        WHERE destination = ${destination} AND state IN ('waiting', 'dead')`;
      this.#receivers.forget(destination);
      return this.#db.run`DELETE FROM webhooks WHERE webhook_id = ${id}`.changes > 0;
    });
  }

  url(id: string): string | null | undefined {
    return this.#db.value<string | null>`SELECT url FROM webhooks WHERE webhook_id = ${id}`;
  }

  attempted(id: string, attempt: DeliveryAttempt): void {
    this.#stats.count(id, attempt);
  }

  /** Disables a webhook because of its receiver. Must be called inside a transaction. */
  disable(id: string, reason: DisabledReason, now: number): void {
    const { changes } = this.#db.run`
      UPDATE webhooks SET enabled = 0, disabled_reason = ${reason}, updated_at = ${now}
      WHERE webhook_id = ${id} AND enabled = 1`;
    if (changes === 0) return;
    this.#routes.invalidateWebhooks();
    this.#pause(id, now);
  }

  #insert(id: string, webhook: NewWebhook, secret: string, now: number): Webhook {
    const { url, description, enabled } = webhook;
    this.#db.run(
      `INSERT INTO webhooks (webhook_id, url, types, metadata, headers, description, secret, enabled,
                             disabled_reason, created_at, updated_at)
       VALUES (@id, @url, @types, @metadata, @headers, @description, @secret, @enabled, @reason, @now, @now)`,
      {
        id,
        url,
        headers: JSON.stringify(webhook.headers ?? {}),
        description,
        secret,
        reason: enabled ? null : 'operator',
        now,
        ...toColumns(webhook),
      },
    );
    return this.get(id, now) as Webhook;
  }

  #pause(id: string, now: number): void {
    const destination = webhookDestination(id);
    this.#makeDeadLetters('destination = @destination', { destination, now });
    if (id === CALLBACKS_ID)
      this.#makeDeadLetters("destination >= 'callback:' AND destination < 'callback;'", {
        destination: 'callback:',
        now,
      });
  }

  #makeDeadLetters(condition: string, parameters: { destination: string; now: number }): void {
    const { changes } = this.#db.run(
      `UPDATE deliveries SET state = 'dead', dead_reason = 'endpoint_disabled', next_at = NULL, ended_at = @now
       WHERE ${condition} AND state = 'waiting'`,
      parameters,
    );
    if (changes > 0)
      this.#dead.add({
        destination: parameters.destination,
        reason: 'endpoint_disabled',
        count: changes,
      });
  }

  /** A transaction that changes webhooks. They are read again even if it fails. */
  #change<T>(work: () => T): T {
    this.#routes.invalidateWebhooks();
    const result = this.#db.transaction(work);
    this.#routes.invalidateWebhooks();
    return result;
  }

  #find(id: string): WebhookRow | undefined {
    return this.#db.row<WebhookRow>(FIND, id);
  }

  #toWebhook(row: WebhookRow, now: number): Webhook {
    return toWebhook(row, this.#stats.lastDay(row.id, now));
  }
}

type WebhookSecrets = { secret: string; oldSecret: string | null; oldSecretUntil: number | null };
const ENDPOINT = `
  SELECT webhook_id AS id, url, headers, enabled, secret, old_secret AS oldSecret, old_secret_until AS oldSecretUntil
  FROM webhooks WHERE webhook_id = ?`;
const FIND = `${SELECT_WEBHOOK} WHERE webhook_id = ?`;
/** In ORDER BY, `id` alone is the name of a webhook. */
const LIST = `${SELECT_WEBHOOK} WHERE webhooks.id < ? ORDER BY webhooks.id DESC LIMIT ?`;

function toColumns({
  types,
  metadata,
  enabled,
}: Pick<NewWebhook, 'types' | 'metadata' | 'enabled'>) {
  return {
    types: JSON.stringify(types),
    metadata: metadata === null ? null : JSON.stringify(metadata),
    enabled: enabled ? 1 : 0,
  };
}

const HOUR_MS = 3_600_000;
const KEPT_MS = 24 * HOUR_MS;

/** Attempts by hour and duration: a page reads some hundred rows of each. Throws LedgerError. */
class WebhookStats {
  readonly #db: LedgerDatabase;

  constructor(database: LedgerDatabase) {
    this.#db = database;
  }

  /** Does nothing for a deleted webhook. Must be called inside a transaction. */
  count(webhookId: string, { at, durationMs, httpStatus, error }: DeliveryAttempt): void {
    const attempts = this.#db.value<number>(ADD, {
      webhookId,
      hour: hourOf(at),
      duration: DurationHistogram.bucketOf(durationMs),
      succeeded: error === null ? 1 : 0,
      responses: httpStatus === null ? 0 : 1,
    });
    // A few times an hour.
    if (attempts === 1)
      this.#db.run(DELETE_OTHERS, {
        webhookId,
        from: hourOf(at - KEPT_MS),
        to: hourOf(at + KEPT_MS),
      });
  }

  lastDay(webhookId: string, now: number): WebhookDay | null {
    const rows = this.#db.rows<{
      duration: number;
      attempts: number;
      succeeded: number;
      responses: number;
    }>(SUMS, { webhookId, since: hourOf(now - KEPT_MS) });
    const totalOf = (name: 'attempts' | 'succeeded') =>
      rows.reduce((total, row) => total + row[name], 0);
    const attempts = totalOf('attempts');
    if (attempts === 0) return null;
    const responses = rows.map((row) => [row.duration, row.responses]);
    const p95 = new DurationHistogram(Object.fromEntries(responses)).percentile(0.95);
    return {
      attempts,
      successRate: totalOf('succeeded') / attempts,
      responseP95Ms: p95 === null ? null : Math.round(p95),
    };
  }
}

function hourOf(at: number): number {
  return at - (at % HOUR_MS);
}

const ADD = `
  INSERT INTO webhook_stats (webhook, hour, duration, attempts, succeeded, responses)
  SELECT id, @hour, @duration, 1, @succeeded, @responses FROM webhooks WHERE webhook_id = @webhookId
  ON CONFLICT DO UPDATE SET
    attempts = attempts + 1, succeeded = succeeded + @succeeded, responses = responses + @responses
  RETURNING attempts`;

const OF_WEBHOOK = 'webhook = (SELECT id FROM webhooks WHERE webhook_id = @webhookId)';
/** Also deletes the hours that a clock wrote that was far ahead. */
const DELETE_OTHERS = `DELETE FROM webhook_stats WHERE ${OF_WEBHOOK} AND hour NOT BETWEEN @from AND @to`;
const SUMS = `
  SELECT duration, sum(attempts) AS attempts, sum(succeeded) AS succeeded, sum(responses) AS responses
  FROM webhook_stats WHERE ${OF_WEBHOOK} AND hour >= @since
  GROUP BY duration`;
