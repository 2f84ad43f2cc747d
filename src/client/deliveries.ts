import { queryOf, type SendRequest } from './request.ts';
import type { DawatchEvent } from './shapes.ts';

/** One event for one destination. Times are ISO 8601 in UTC. */
export type Delivery = {
  id: number;
  /** The `webhook-id` that receivers see. */
  event_id: string;
  event_type: string;
  submission_id: string | null;
  /** `webhook:<id>`, `channel:<name>`, or `callback:<origin>`. */
  destination: string;
  /** dead: given up, to be replayed. discarded: its webhook was deleted. */
  state: 'waiting' | 'delivered' | 'dead' | 'discarded';
  dead_reason: 'attempts_used_up' | 'endpoint_gone' | 'endpoint_disabled' | 'not_configured' | 'undeliverable' | null;
  /** Since it was made, or last replayed. */
  attempts_made: number;
  next_at: string | null;
  created_at: string;
  ended_at: string | null;
  /** Only where the ledger is damaged: fields that can't be read. */
  unreadable?: string[] | undefined;
};

/** One try. */
export type DeliveryAttempt = {
  at: string;
  duration_ms: number;
  /** null: there was no answer. */
  http_status: number | null;
  /** null: it worked. */
  error: string | null;
  /** The beginning of the answer's body, as it came: it may hold anything. */
  response: string | null;
};

/** `event`: null if it can not be read. `attempts`: every one there was, oldest first. */
export type DeliveryDetails = Delivery & { event: DawatchEvent | null; attempts: DeliveryAttempt[] };

export type DeliveryPage = { deliveries: Delivery[]; next_cursor: string | null };

export type DeliveryQuery = {
  /** Short for a destination of `webhook:<id>`: give one of the two. */
  webhook_id?: string;
  destination?: string;
  state?: Delivery['state'];
  submission_id?: string;
  event_id?: string;
  /** 1 to 1,000, default 100. */
  limit?: number;
  cursor?: string;
};

/** Which event was sent where, and what came of it. Needs the role admin. Methods throw ApiError or ConnectionError. */
export class DeliveryRequests {
  readonly #ask: SendRequest;

  constructor(ask: SendRequest) {
    this.#ask = ask;
  }

  /** Newest first; `cursor` is the `next_cursor` of the page before. */
  list(query: DeliveryQuery = {}): Promise<DeliveryPage> {
    return this.#ask('GET', `/v1/deliveries${queryOf(query)}`);
  }

  get(id: number): Promise<DeliveryDetails> {
    return this.#ask('GET', `/v1/deliveries/${id}`);
  }

  /** Sends it again, whatever became of it, with the same event id. */
  replay(id: number): Promise<Delivery> {
    return this.#ask('POST', `/v1/deliveries/${id}/replay`);
  }

  /** Sends every dead letter of the destination again whose event is from `since` (ISO 8601) on. */
  replayDead(dead: { destination: string; since: string }): Promise<{ replayed: number }> {
    return this.#ask('POST', '/v1/deliveries/replay', dead);
  }
}
