import type { LedgerDatabase } from '../file/ledger-database.ts';

/** A signing secret. `publicKey`: of a v1a secret; null for v1. */
export type WebhookSecret = { secret: string; publicKey: string | null };

/** The most secrets that sign at once during rotations. Each adds a signature to every request. */
const MAX_SECRETS = 5;

/** The signing secrets of webhooks. Every method that writes must be called inside a transaction. */
export class WebhookSecrets {
  readonly #db: LedgerDatabase;

  constructor(database: LedgerDatabase) {
    this.#db = database;
  }

  /** Returns the secrets that are valid at `now`, newest first. */
  valid(webhookId: string, now: number): WebhookSecret[] {
    return this.#db.rows<WebhookSecret>`
      SELECT secret, public_key AS publicKey FROM webhook_secrets
      WHERE webhook = (SELECT id FROM webhooks WHERE webhook_id = ${webhookId})
        AND (expires_at IS NULL OR expires_at > ${now}) ORDER BY id DESC`;
  }

  add(webhookId: string, { secret, publicKey }: WebhookSecret): void {
    this.#db.run`
      INSERT INTO webhook_secrets (webhook, secret, public_key)
      SELECT id, ${secret}, ${publicKey} FROM webhooks WHERE webhook_id = ${webhookId}`;
  }

  /** Adds a secret. Of the older ones, the newest four stay valid until `oldUntil`, or until they expire before that. */
  rotate(webhookId: string, secret: WebhookSecret, { oldUntil, now }: { oldUntil: number; now: number }): void {
    const webhook = this.#db.value<number>`SELECT id FROM webhooks WHERE webhook_id = ${webhookId}`;
    this.#db.run`
      UPDATE webhook_secrets SET expires_at = min(coalesce(expires_at, ${oldUntil}), ${oldUntil})
      WHERE webhook = ${webhook}`;
    this.#db.run`DELETE FROM webhook_secrets WHERE webhook = ${webhook} AND expires_at <= ${now}`;
    this.add(webhookId, secret);
    this.#db.run`
      DELETE FROM webhook_secrets WHERE webhook = ${webhook} AND id NOT IN
        (SELECT id FROM webhook_secrets WHERE webhook = ${webhook} ORDER BY id DESC LIMIT ${MAX_SECRETS})`;
  }
}
