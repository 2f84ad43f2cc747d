import { parseDestination } from '../../domain/notifications/delivery.ts';
import { CALLBACKS_ID } from '../../domain/notifications/webhook.ts';
import { canonicalId } from '../../domain/submission.ts';
import { CALLBACKS, type EventRoutes } from '../events/event-routes.ts';
import type { Outbox } from '../events/outbox.ts';
import type { LedgerDatabase } from '../file/ledger-database.ts';
import type { ReplayConditions } from './delivery-filter.ts';
import { type MissedEvent, WebhookPauses } from './webhook-pauses.ts';

/** Replays the events that a webhook, or one origin of the callbacks, missed while it was disabled. Throws LedgerError. */
export class MissedEvents {
  readonly #db: LedgerDatabase;
  readonly #routes: EventRoutes;
  readonly #outbox: Outbox;
  readonly #pauses: WebhookPauses;

  constructor(database: LedgerDatabase, { routes, outbox }: { routes: EventRoutes; outbox: Outbox }) {
    this.#db = database;
    this.#routes = routes;
    this.#outbox = outbox;
    this.#pauses = new WebhookPauses(database);
  }

  /**
   * Adds deliveries of the missed events since `since`; `only` those that match. Returns their number. Must be called inside a
   * transaction.
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

  /** Calls `visit` with each missed event that has no delivery, and its destination. `remove`: see WebhookPauses. */
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
      if (submissionId !== undefined && ![only.submissionId, submissionId].includes(event.submissionId ?? '')) return;
      const target = isCallback ? this.#routes.callbackOf(event) : destination;
      if (target === undefined || (parsed.kind === 'callback' && target !== destination)) return;
      const isKnown = this.#db
        .row`SELECT 1 AS found FROM deliveries WHERE event = ${event.seq} AND destination = ${target}`;
      if (!isKnown) visit(event, target);
    };
    this.#pauses.replay(webhookId, since, visitMatching, { remove });
  }
}
