import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { storedObject } from '../lib/stored.ts';
import { canonicalId } from '../submissions/submission.ts';
import { parseDestination, type ReplayConditions } from './delivery.ts';
import { CALLBACKS, type EventRoutes } from './event-routes.ts';
import type { Outbox } from './outbox.ts';
import { CALLBACKS_ID } from './webhook.ts';

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

/**
 * Replays the events that a webhook, or one origin of the callbacks, missed while it was disabled.
 * Throws LedgerError.
 */
export class MissedEvents {
  readonly #db: LedgerDatabase;
  readonly #routes: EventRoutes;
  readonly #outbox: Outbox;
  readonly #pauses: WebhookPauses;

  constructor(
    database: LedgerDatabase,
    { routes, outbox }: { routes: EventRoutes; outbox: Outbox },
  ) {
    this.#db = database;
    this.#routes = routes;
    this.#outbox = outbox;
    this.#pauses = new WebhookPauses(database);
  }

  /**
   * Adds deliveries of the missed events since `since`; `only` those that match. Returns their
   * number. Must be called inside a transaction.
   */
  replay(destination: string, since: number, now: number, only: ReplayConditions = {}): number {
    // The events of the pause that do not match are still missed.
    const isAll = Object.values(only).every((condition) => condition === undefined);
    const remove = isAll && parseDestination(destination).kind === 'webhook';
    let count = 0;
    this.#visit(destination, { since, only, remove }, (event, target) => {
      this.#db.run`
        INSERT INTO deliveries (event, destination, state, next_at, created_at, replayed_at)
        VALUES (${event.seq}, ${target}, 'waiting', ${now}, ${event.at}, ${now})`;
      count += 1;
      this.#outbox.notifyWaiting(target);
    });
    return count;
  }

  /** Returns the number of deliveries that `replay` would add. */
  count(destination: string, since: number, only: ReplayConditions = {}): number {
    let count = 0;
    this.#visit(destination, { since, only, remove: false }, () => {
      count += 1;
    });
    return count;
  }

  /**
   * Calls `visit` with each missed event that has no delivery, and its destination. `remove`: see
   * WebhookPauses.
   */
  #visit(
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
    const route = this.#routes.ofWebhook(webhookId);
    const visitMatching = (event: MissedEvent) => {
      if (!route?.matches(event) || event.at >= until) return;
      if (eventTypes && !eventTypes.includes(event.type)) return;
      if (
        submissionId !== undefined &&
        ![only.submissionId, submissionId].includes(event.submissionId ?? '')
      )
        return;
      const target = isCallback ? this.#routes.callbackOf(event) : destination;
      if (target === undefined || (parsed.kind === 'callback' && target !== destination)) return;
      const isKnown = this.#db
        .row`SELECT 1 AS found FROM deliveries WHERE event = ${event.seq} AND destination = ${target}`;
      if (!isKnown) visit(event, target);
    };
    this.#pauses.replay(webhookId, since, visitMatching, { remove });
  }
}
