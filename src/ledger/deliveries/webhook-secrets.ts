import type { LedgerDatabase } from '../file/ledger-database.ts';

/** A signing secret. `publicKey`: of a v1a secret; null for v1. */
export type WebhookSecret = { secret: string; publicKey: string | null };

/** The most secrets that sign at once during rotations. Each adds a signature to every request. */
const MAX_SECRETS = 5;

/** The signing secrets of webhooks. Every method that writes must be called inside a transaction. */
export class WebhookSecrets {
  readonly #database: LedgerDatabase;

  constructor(database: LedgerDatabase) {
    this.#database = database;
  }

  /** Returns the secrets that are valid at `now`, newest first. */
  valid(webhookId: string, now: number): WebhookSecret[] {
    return this.#database.rows<WebhookSecret>(
      `SELECT secret, public_key AS publicKey FROM webhook_secrets
       WHERE webhook = ${WEBHOOK} AND (expires_at IS NULL OR expires_at > @now) ORDER BY id DESC`,
      { webhookId, now },
    );
  }

  add(webhookId: string, { secret, publicKey }: WebhookSecret): void {
    this.#database.run(
      `INSERT INTO webhook_secrets (webhook, secret, public_key) VALUES (${WEBHOOK}, @secret, @publicKey)`,
      { webhookId, secret, publicKey },
    );
  }

  /** Adds a secret. Of the older ones, the newest four stay valid until `oldUntil`, or until they expire before that. */
  rotate(webhookId: string, secret: WebhookSecret, { oldUntil, now }: { oldUntil: number; now: number }): void {
    this.#database.run(
      `UPDATE webhook_secrets SET expires_at = min(coalesce(expires_at, @oldUntil), @oldUntil)
       WHERE webhook = ${WEBHOOK}`,
      { webhookId, oldUntil },
    );
    this.#database.run(`DELETE FROM webhook_secrets WHERE webhook = ${WEBHOOK} AND expires_at <= @now`, {
      webhookId,
      now,
    });
    this.add(webhookId, secret);
    this.#database.run(
      `DELETE FROM webhook_secrets WHERE webhook = ${WEBHOOK} AND id NOT IN
         (SELECT id FROM webhook_secrets WHERE webhook = ${WEBHOOK} ORDER BY id DESC LIMIT ${MAX_SECRETS})`,
      { webhookId },
    );
  }
}

const WEBHOOK = '(SELECT id FROM webhooks WHERE webhook_id = @webhookId)';
