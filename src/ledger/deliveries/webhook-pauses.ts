import type Database from 'better-sqlite3';
import { readStoredObject } from '../../domain/stored.ts';

/** An event that may have to be sent again. */
export type MissedEvent = {
  seq: number;
  type: string;
  at: number;
  submissionId: string | null;
  metadata: Record<string, unknown> | null;
  callbackUrl: string | null;
};

type Pause = { id: number; after: number; through: number };

const PAGE = 1_000;

/**
 * While a webhook is disabled its events have no deliveries: one row remembers between which events that was, however many
 * there are. Every method runs inside of a transaction.
 */
export class WebhookPauses {
  readonly #sql: ReturnType<typeof prepareStatements>;

  constructor(db: Database.Database) {
    this.#sql = prepareStatements(db);
  }

  /** The webhook misses every event from now on. */
  begin(webhookId: string): void {
    this.#sql.begin.run(webhookId);
  }

  /** It misses none from now on. */
  end(webhookId: string): void {
    this.#sql.end.run(webhookId);
    this.#sql.dropEmpty.run(webhookId);
  }

  /**
   * Calls `visit` with each event that the webhook missed, from the first one that is not older than `since` on, and that is
   * still in the ledger. `forget`: it is not asked for again.
   */
  replay(webhookId: string, since: number, visit: (event: MissedEvent) => void, { forget }: { forget: boolean }): void {
    for (const { id, after, through } of this.#sql.of.all(webhookId) as Pause[]) {
      const first = this.#sql.first.get({ after, through, since }) as number | null;
      if (first === null) continue;
      for (let position = first - 1; position < through; ) {
        const rows = this.#sql.events.all({ after: position, through, limit: PAGE }) as EventRow[];
        for (const { metadata, ...event } of rows) visit({ ...event, metadata: readStoredObject(metadata) ?? null });
        position = rows.length < PAGE ? through : (rows.at(-1)?.seq ?? through);
      }
      if (forget) this.#sql.cut.run({ id, through: first - 1 });
    }
    this.#sql.dropEmpty.run(webhookId);
  }
}

type EventRow = Omit<MissedEvent, 'metadata'> & { metadata: string | null };

const OWN = '(SELECT id FROM webhooks WHERE webhook_id = ?)';
const NEWEST = "(SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'outbox')";

function prepareStatements(db: Database.Database) {
  return {
    begin: db.prepare(`INSERT INTO webhook_pauses (webhook, after) VALUES (${OWN}, ${NEWEST})`),
    end: db.prepare(`UPDATE webhook_pauses SET through = ${NEWEST} WHERE webhook = ${OWN} AND through IS NULL`),
    dropEmpty: db.prepare(`DELETE FROM webhook_pauses WHERE webhook = ${OWN} AND through <= after`),
    of: db.prepare(`
      -- The pauses that are over, oldest first.
      SELECT id, after, through FROM webhook_pauses WHERE webhook = ${OWN} AND through IS NOT NULL ORDER BY id`),
    first: db.prepare('SELECT min(seq) FROM outbox WHERE seq > @after AND seq <= @through AND at >= @since').pluck(),
    events: db.prepare(`
      -- The next events of a pause. A test of a webhook is not for it to miss.
      SELECT o.seq, o.type, o.at, s.submission_id AS submissionId, s.metadata, s.callback_url AS callbackUrl
      FROM outbox o LEFT JOIN submissions s ON s.id = o.submission
      WHERE o.seq > @after AND o.seq <= @through AND o.type <> 'webhook.test' ORDER BY o.seq LIMIT @limit`),
    cut: db.prepare('UPDATE webhook_pauses SET through = @through WHERE id = @id'),
  };
}
