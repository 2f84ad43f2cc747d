import { randomUUID } from 'node:crypto';
import type Database from 'better-sqlite3';
import { webhookDestination } from '../../domain/notifications/delivery.ts';
import {
  CALLBACKS_ID,
  DISABLED_REASONS,
  type DisabledReason,
  type NewWebhook,
  SIGNATURES,
  type Signature,
  type Webhook,
  type WebhookPatch,
} from '../../domain/notifications/webhook.ts';
import { nearestTime } from '../../domain/stored.ts';
import { type FanOut, subscriptionOf } from '../events/fan-out.ts';
import type { LedgerDatabase } from '../file/ledger-database.ts';
import { takePage } from '../file/page.ts';
import { unreadableTimes } from '../submissions/submission-rows.ts';

/** Above the longest time between two attempts at one delivery. */
const MAX_GAP_MS = 30 * 3_600_000;
/** During rotations so many sign at once, at most: each is a signature in every request. */
const MAX_SECRETS = 5;

/** A secret to sign with; `publicKey`: of a v1a one. */
export type WebhookSecret = { secret: string; publicKey: string | null };

/** Whom events are sent to over HTTP, and the secrets they are signed with. Throws LedgerError. */
export class Webhooks {
  readonly #transactions: LedgerDatabase;
  readonly #fanOut: FanOut;
  readonly #sql: ReturnType<typeof prepareStatements>;

  constructor(transactions: LedgerDatabase, fanOut: FanOut) {
    this.#transactions = transactions;
    this.#fanOut = fanOut;
    this.#sql = prepareStatements(transactions.db);
  }

  create(webhook: NewWebhook, secret: WebhookSecret, now: number): Webhook {
    return this.#changing(() => this.#insert(`wh_${randomUUID().replaceAll('-', '')}`, webhook, secret, now));
  }

  /** Makes the endpoint of the callbacks if there is none yet. */
  ensureCallbacks(makeSecret: () => WebhookSecret, now: number): void {
    if (this.get(CALLBACKS_ID, now)) return;
    const webhook: NewWebhook = {
      url: null,
      types: ['submission.*'],
      metadata: null,
      description: 'the callback_url of submissions',
      signature: 'v1',
      enabled: true,
    };
    this.#changing(() => this.#insert(CALLBACKS_ID, webhook, makeSecret(), now));
  }

  get(id: string, now: number): Webhook | undefined {
    return this.#transactions.read(() => this.#find(id, now));
  }

  /** Newest first, with the position to go on `before`; null at the end. */
  list(query: { limit: number; before?: number | undefined; now: number }): {
    webhooks: Webhook[];
    nextBefore: number | null;
  } {
    const { limit, before = Number.MAX_SAFE_INTEGER, now } = query;
    return this.#transactions.read(() => {
      const { page, hasMore } = takePage<WebhookRow>(this.#sql.list.iterate({ before, limit: limit + 1 }), limit);
      return {
        webhooks: page.map((row) => this.#toWebhook(row, now)),
        nextBefore: hasMore ? (page.at(-1)?.id ?? null) : null,
      };
    });
  }

  /** Where it is sent to and what it is signed with now, the newest first. Undefined: there is none, or it is disabled. */
  endpoint(id: string, now: number): { url: string | null; secrets: string[] } | undefined {
    return this.#transactions.read(() => {
      const row = this.#sql.get.get(id) as WebhookRow | undefined;
      if (row?.enabled !== 1) return undefined;
      const secrets = this.#sql.secrets.all({ id, now }) as SecretRow[];
      return { url: row.url, secrets: secrets.map(({ secret }) => secret) };
    });
  }

  /** Undefined: there is none. To enable it makes it good again; to disable it gives up what waits for it. */
  update(id: string, patch: WebhookPatch, now: number): Webhook | undefined {
    return this.#changing(() => {
      const before = this.#find(id, now);
      if (!before) return undefined;
      const after = { ...before, ...patch };
      const { url, types, metadata, description, enabled } = after;
      // Whoever disables it by hand has taken note of why it was disabled before.
      const reason = enabled ? null : patch.enabled === false ? 'operator' : before.disabledReason;
      // Another address, or a new beginning: what failed before counts no more.
      const failingSince = patch.url !== undefined || (enabled && !before.enabled) ? null : before.failingSince;
      this.#sql.update.run({
        id,
        url,
        description,
        reason,
        failingSince,
        now,
        ...written({ types, metadata, enabled }),
      });
      if (!enabled && before.enabled) this.#pause(id, now);
      if (enabled && !before.enabled) this.#fanOut.pauses.end(id);
      return this.#find(id, now);
    });
  }

  /** The old secrets, the newest four, sign too until `oldUntil`. Undefined: there is no such webhook. */
  rotate(id: string, secret: WebhookSecret, times: { oldUntil: number; now: number }): Webhook | undefined {
    const { oldUntil, now } = times;
    return this.#changing(() => {
      if (!this.#find(id, now)) return undefined;
      this.#sql.expireSecrets.run({ id, oldUntil });
      this.#sql.dropExpired.run({ id, now });
      this.#sql.addSecret.run({ id, ...secret });
      this.#sql.dropOldest.run({ id, keep: MAX_SECRETS });
      return this.#find(id, now);
    });
  }

  /** False: there is none. What waits for it, and its dead letters, are discarded. */
  delete(id: string, now: number): boolean {
    return this.#changing(() => {
      this.#sql.discard.run({ destination: webhookDestination(id), now });
      return this.#sql.delete.run(id).changes > 0;
    });
  }

  /** Inside a transaction. */
  succeeded(id: string): void {
    this.#sql.succeeded.run(id);
  }

  /** Inside a transaction: an attempt failed. After nothing else for so long it is disabled. */
  failed(id: string, at: number, disableAfterMs: number): void {
    const failingSince = this.#sql.failed.get({ id, at, recent: at - MAX_GAP_MS }) as number | undefined;
    if (failingSince !== undefined && at - failingSince >= disableAfterMs) this.disable(id, 'failing', at);
  }

  /** Inside a transaction. Undefined: there is no such webhook. */
  revisionOf(id: string): number | undefined {
    return this.#sql.revision.get(id) as number | undefined;
  }

  /** Inside a transaction. */
  disable(id: string, reason: DisabledReason, now: number): void {
    if (this.#sql.disable.run({ id, reason, now }).changes === 0) return;
    this.#fanOut.invalidateWebhooks();
    this.#pause(id, now);
  }

  #insert(id: string, webhook: NewWebhook, secret: WebhookSecret, now: number): Webhook {
    const { url, description, signature, enabled } = webhook;
    const reason = enabled ? null : 'operator';
    this.#sql.insert.run({ id, url, description, signature, reason, now, ...written(webhook) });
    this.#sql.addSecret.run({ id, ...secret });
    if (!enabled) this.#fanOut.pauses.begin(id);
    return this.#find(id, now) as Webhook;
  }

  /** What waits becomes dead letters; what comes is remembered by where it begins. */
  #pause(id: string, now: number): void {
    this.#fanOut.pauses.begin(id);
    const destination = webhookDestination(id);
    const { changes } = this.#sql.giveUp.run({ destination, now });
    this.#fanOut.deadLetters.add(destination, 'endpoint_disabled', changes);
    if (id !== CALLBACKS_ID) return;
    this.#fanOut.deadLetters.add(ANY_CALLBACK, 'endpoint_disabled', this.#sql.giveUpCallbacks.run({ now }).changes);
  }

  #changing<T>(work: () => T): T {
    this.#fanOut.invalidateWebhooks();
    const result = this.#transactions.transaction(work);
    this.#fanOut.invalidateWebhooks();
    return result;
  }

  #find(id: string, now: number): Webhook | undefined {
    const row = this.#sql.get.get(id) as WebhookRow | undefined;
    return row && this.#toWebhook(row, now);
  }

  #toWebhook(row: WebhookRow, now: number): Webhook {
    const secrets = this.#sql.secrets.all({ id: row.webhook_id, now }) as SecretRow[];
    const { types, metadata, unreadable = [] } = subscriptionOf(row);
    const isSignature = SIGNATURES.includes(row.signature);
    const isReason = row.disabled_reason === null || DISABLED_REASONS.includes(row.disabled_reason);
    const lost = [
      ...unreadable,
      ...(isSignature ? [] : ['signature']),
      ...(isReason ? [] : ['disabled_reason']),
      ...unreadableTimes(row, ['failing_since', 'created_at', 'updated_at']),
    ];
    return {
      ...(lost.length > 0 && { unreadable: lost }),
      id: row.webhook_id,
      url: row.url,
      types,
      metadata,
      description: row.description,
      signature: isSignature ? row.signature : 'v1',
      publicKeys: secrets.flatMap(({ public_key }) => public_key ?? []),
      enabled: row.enabled === 1,
      disabledReason: isReason ? row.disabled_reason : 'operator',
      failingSince: row.failing_since === null ? null : nearestTime(row.failing_since),
      createdAt: nearestTime(row.created_at),
      updatedAt: nearestTime(row.updated_at),
    };
  }
}

type WebhookRow = {
  id: number;
  webhook_id: string;
  url: string | null;
  types: string;
  metadata: string | null;
  description: string;
  signature: Signature;
  enabled: number;
  disabled_reason: DisabledReason | null;
  failing_since: number | null;
  created_at: number;
  updated_at: number;
};

type SecretRow = { secret: string; public_key: string | null };

const ANY_CALLBACK = 'callback:';

/** What has another form in the table. */
function written(webhook: Pick<NewWebhook, 'types' | 'metadata' | 'enabled'>) {
  const { types, metadata, enabled } = webhook;
  return {
    types: JSON.stringify(types),
    metadata: metadata === null ? null : JSON.stringify(metadata),
    enabled: enabled ? 1 : 0,
  };
}

const OWN = '(SELECT id FROM webhooks WHERE webhook_id = @id)';

function prepareStatements(db: Database.Database) {
  return {
    insert: db.prepare(`
      -- A new webhook.
      INSERT INTO webhooks (webhook_id, url, types, metadata, description, signature, enabled, disabled_reason,
                            created_at, updated_at)
      VALUES (@id, @url, @types, @metadata, @description, @signature, @enabled, @reason, @now, @now)`),
    get: db.prepare('SELECT * FROM webhooks WHERE webhook_id = ?'),
    list: db.prepare('SELECT * FROM webhooks WHERE id < @before ORDER BY id DESC LIMIT @limit'),
    update: db.prepare(`
      -- What an operator changes.
      UPDATE webhooks
      SET revision = revision + (url IS NOT @url OR enabled <> @enabled), url = @url, types = @types, metadata = @metadata, description = @description, enabled = @enabled,
          disabled_reason = @reason, failing_since = @failingSince, updated_at = @now
      WHERE webhook_id = @id`),
    delete: db.prepare('DELETE FROM webhooks WHERE webhook_id = ?'),
    succeeded: db.prepare(
      'UPDATE webhooks SET failing_since = NULL, failed_at = NULL WHERE webhook_id = ? AND failing_since IS NOT NULL',
    ),
    failed: db
      .prepare(`
        -- Since when it only fails. A failure long after the one before it is a new story.
        UPDATE webhooks SET failing_since = iif(failed_at >= @recent, coalesce(failing_since, @at), @at), failed_at = @at
        WHERE webhook_id = @id AND enabled = 1 RETURNING failing_since`)
      .pluck(),
    revision: db.prepare('SELECT revision FROM webhooks WHERE webhook_id = ?').pluck(),
    disable: db.prepare(`
      -- By what its receiver did.
      UPDATE webhooks SET enabled = 0, disabled_reason = @reason, revision = revision + 1, updated_at = @now
      WHERE webhook_id = @id AND enabled = 1`),
    giveUp: db.prepare(`
      -- Nothing is sent to a disabled webhook: what waits for it can be replayed later.
      UPDATE deliveries SET state = 'dead', dead_reason = 'endpoint_disabled', next_at = NULL, ended_at = @now
      WHERE destination = @destination AND state = 'waiting'`),
    giveUpCallbacks: db.prepare(`
      -- The same of everything that has its address from a submission.
      UPDATE deliveries SET state = 'dead', dead_reason = 'endpoint_disabled', next_at = NULL, ended_at = @now
      WHERE destination >= 'callback:' AND destination < 'callback;' AND state = 'waiting'`),
    discard: db.prepare(`
      -- Nobody is left to tell.
      UPDATE deliveries
      SET state = 'discarded', dead_reason = NULL, next_at = NULL, ended_at = coalesce(ended_at, @now)
      WHERE destination = @destination AND state IN ('waiting', 'dead')`),
    secrets: db.prepare(`
      -- What a webhook is signed with now.
      SELECT secret, public_key FROM webhook_secrets
      WHERE webhook = ${OWN} AND (expires_at IS NULL OR expires_at > @now) ORDER BY id DESC`),
    addSecret: db.prepare(
      `INSERT INTO webhook_secrets (webhook, secret, public_key) VALUES (${OWN}, @secret, @publicKey)`,
    ),
    expireSecrets: db.prepare(`
      -- None of them for longer than this; one that ends sooner does.
      UPDATE webhook_secrets SET expires_at = min(coalesce(expires_at, @oldUntil), @oldUntil) WHERE webhook = ${OWN}`),
    dropExpired: db.prepare(`DELETE FROM webhook_secrets WHERE webhook = ${OWN} AND expires_at <= @now`),
    dropOldest: db.prepare(`
      -- All but the newest.
      DELETE FROM webhook_secrets WHERE webhook = ${OWN} AND id NOT IN
        (SELECT id FROM webhook_secrets WHERE webhook = ${OWN} ORDER BY id DESC LIMIT @keep)`),
  };
}
