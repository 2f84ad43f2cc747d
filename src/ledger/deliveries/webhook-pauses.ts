import { readStoredObject } from '../../domain/stored.ts';
import type { LedgerDatabase } from '../file/ledger-database.ts';

/** An event that a webhook missed while it was disabled. */
export type MissedEvent = {
  seq: number;
  type: string;
  at: number;
  submissionId: string | null;
  metadata: Record<string, unknown> | null;
  callbackUrl: string | null;
};

const PAGE_EVENTS = 1_000;

/**
 * The times in which webhooks were disabled. Events of such a time have no deliveries: one row records between which events it
 * was, however many there are. Every method must be called inside a transaction.
 */
export class WebhookPauses {
  readonly #database: LedgerDatabase;

  constructor(database: LedgerDatabase) {
    this.#database = database;
  }

  /** The webhook misses every event from now on. */
  begin(webhookId: string): void {
    this.#database.run(`INSERT INTO webhook_pauses (webhook, after) VALUES (${WEBHOOK}, ${NEWEST})`, webhookId);
  }

  /** The webhook misses no event from now on. */
  end(webhookId: string): void {
    const sql = `UPDATE webhook_pauses SET through = ${NEWEST} WHERE webhook = ${WEBHOOK} AND through IS NULL`;
    this.#database.run(sql, webhookId);
    this.#removeEmpty(webhookId);
  }

  /**
   * Calls `visit` with each missed event that is still in the ledger, from the first one that is not older than `since`.
   * `remove`: these events do not count as missed any more.
   */
  replay(webhookId: string, since: number, visit: (event: MissedEvent) => void, { remove }: { remove: boolean }): void {
    const pauses = this.#database.rows<{ id: number; after: number; through: number }>(
      `SELECT id, after, through FROM webhook_pauses WHERE webhook = ${WEBHOOK} AND through IS NOT NULL ORDER BY id`,
      webhookId,
    );
    for (const { id, after, through } of pauses) {
      const first = this.#database.value<number | null>(
        'SELECT min(seq) FROM outbox WHERE seq > ? AND seq <= ? AND at >= ?',
        [after, through, since],
      );
      if (first === null || first === undefined) continue;
      for (let position = first - 1; position < through; ) {
        const rows = this.#events(position, through);
        for (const { metadata, ...event } of rows) visit({ ...event, metadata: readStoredObject(metadata) ?? null });
        position = rows.length < PAGE_EVENTS ? through : (rows.at(-1)?.seq ?? through);
      }
      if (remove) this.#database.run('UPDATE webhook_pauses SET through = ? WHERE id = ?', first - 1, id);
    }
    this.#removeEmpty(webhookId);
  }

  /** A webhook does not miss the tests of webhooks. */
  #events(after: number, through: number) {
    return this.#database.rows<Omit<MissedEvent, 'metadata'> & { metadata: string | null }>(
      `SELECT o.seq, o.type, o.at, s.submission_id AS submissionId, s.metadata, s.callback_url AS callbackUrl
       FROM outbox o LEFT JOIN submissions s ON s.id = o.submission
       WHERE o.seq > ? AND o.seq <= ? AND o.type <> 'webhook.test' ORDER BY o.seq LIMIT ?`,
      [after, through, PAGE_EVENTS],
    );
  }

  #removeEmpty(webhookId: string): void {
    this.#database.run(`DELETE FROM webhook_pauses WHERE webhook = ${WEBHOOK} AND through <= after`, webhookId);
  }
}

const WEBHOOK = '(SELECT id FROM webhooks WHERE webhook_id = ?)';
const NEWEST = "(SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'outbox')";
