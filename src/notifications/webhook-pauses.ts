import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { storedObject } from '../lib/stored.ts';

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
 * The times in which webhooks were disabled. Events of such a time have no deliveries: one row
 * records between which events it was, however many there are. Methods that write must be called
 * inside a transaction.
 */
export class WebhookPauses {
  readonly #db: LedgerDatabase;

  constructor(database: LedgerDatabase) {
    this.#db = database;
  }

  /** The webhook misses every event from now on. */
  begin(webhookId: string): void {
    this.#db.run`
      INSERT INTO webhook_pauses (webhook, after)
      SELECT id, (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'outbox')
      FROM webhooks WHERE webhook_id = ${webhookId}`;
  }

  /** The webhook misses no event from now on. */
  end(webhookId: string): void {
    this.#db.run`
      UPDATE webhook_pauses
      SET through = (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'outbox')
      WHERE webhook = (SELECT id FROM webhooks WHERE webhook_id = ${webhookId}) AND through IS NULL`;
    this.#removeEmpty(webhookId);
  }

  /**
   * Calls `visit` with each missed event that is still in the ledger, from the first one that is
   * not older than `since`. `remove`: these events do not count as missed any more.
   */
  replay(
    webhookId: string,
    since: number,
    visit: (event: MissedEvent) => void,
    { remove }: { remove: boolean },
  ): void {
    const pauses = this.#db.rows<{ id: number; after: number; through: number }>`
      SELECT p.id, p.after, p.through FROM webhook_pauses p JOIN webhooks w ON w.id = p.webhook
      WHERE w.webhook_id = ${webhookId} AND p.through IS NOT NULL ORDER BY p.id`;
    for (const { id, after, through } of pauses) {
      const first = this.#db.value<number | null>`
        SELECT min(seq) FROM outbox WHERE seq > ${after} AND seq <= ${through} AND at >= ${since}`;
      if (first === null || first === undefined) continue;
      for (let position = first - 1; position < through; ) {
        const rows = this.#events(position, through);
        for (const { metadata, ...event } of rows)
          visit({ ...event, metadata: storedObject(metadata, 'a submission', 'metadata') });
        position = rows.length < PAGE_EVENTS ? through : (rows.at(-1)?.seq ?? through);
      }
      if (remove) this.#db.run`UPDATE webhook_pauses SET through = ${first - 1} WHERE id = ${id}`;
    }
    if (remove) this.#removeEmpty(webhookId);
  }

  /** Tests of other destinations and events of muted alerts do not count as missed. */
  #events(after: number, through: number) {
    return this.#db.rows<Omit<MissedEvent, 'metadata'> & { metadata: string | null }>`
      SELECT o.seq, o.type, o.at, s.submission_id AS submissionId, s.metadata, s.callback_url AS callbackUrl
      FROM outbox o LEFT JOIN submissions s ON s.id = o.submission
      WHERE o.seq > ${after} AND o.seq <= ${through} AND o.type NOT IN ('webhook.test', 'channel.test')
        AND CASE WHEN o.type GLOB 'alert.*' AND json_valid(o.detail) THEN o.detail ->> 'muted' END IS NOT 1
      ORDER BY o.seq LIMIT ${PAGE_EVENTS}`;
  }

  #removeEmpty(webhookId: string): void {
    this.#db.run`
      DELETE FROM webhook_pauses
      WHERE webhook = (SELECT id FROM webhooks WHERE webhook_id = ${webhookId}) AND through <= after`;
  }
}
