import type { DawatchEvent } from './notifications/event-shapes.ts';
import { queryOf, type SendRequest } from './request.ts';

/** The delivery of one event to one destination. Times are ISO 8601 in UTC. */
export type Delivery = {
  id: number;
  /** Sent to receivers as `webhook-id`. */
  event_id: string;
  event_type: string;
  submission_id: string | null;
  /** `webhook:<id>`, `channel:<name>`, or `callback:<origin>`. */
  destination: string;
  /** dead: a dead letter, which can be replayed. discarded: its webhook was deleted. */
  state: 'waiting' | 'delivered' | 'dead' | 'discarded';
  dead_reason:
    | 'attempts_used_up'
    | 'endpoint_gone'
    | 'endpoint_disabled'
    | 'not_configured'
    | 'undeliverable'
    | null;
  /** Attempts since creation or the last replay. */
  attempts_made: number;
  /** Of the newest attempt. null: no response, or no attempt yet. */
  last_http_status: number | null;
  /** Of the newest attempt. null: success, or no attempt yet. */
  last_error: string | null;
  next_at: string | null;
  created_at: string;
  ended_at: string | null;
};

export type DeliveryAttempt = {
  at: string;
  duration_ms: number;
  /** null: no response. */
  http_status: number | null;
  /** null: success. */
  error: string | null;
  /** The beginning of the response body, unmodified and untrusted. */
  response: string | null;
};

/** `attempts`: all attempts, oldest first. */
export type DeliveryDetails = Delivery & { event: DawatchEvent; attempts: DeliveryAttempt[] };

export type DeliveryPage = { deliveries: Delivery[]; next_cursor: string | null };

export type DeliveryQuery = {
  /** Shorthand for the destination `webhook:<id>`. Use one of the two. */
  webhook_id?: string;
  destination?: string;
  state?: Delivery['state'] | readonly Delivery['state'][];
  submission_id?: string;
  event_id?: string;
  /** Types of events, or wildcards such as `submission.*`. */
  event_type?: string | readonly string[];
  /** The time of the event, ISO 8601: `since` or later, and before `until`. */
  since?: string;
  until?: string;
  /** 1 to 1,000, default 100. */
  limit?: number;
  cursor?: string;
};

/**
 * `since`, `until`: times of the events, ISO 8601. `event_types`: exact types, or wildcards such as
 * `submission.*`.
 */
export type ReplayRequest = { destination: string; since: string } & Partial<{
  until: string;
  event_types: readonly string[];
  submission_id: string;
  dry_run: boolean;
}>;

/**
 * Deliveries of events and their results. Needs the role admin. Methods throw ApiError or
 * ConnectionError.
 */
export class DeliveryRequests {
  readonly #send: SendRequest;

  constructor(send: SendRequest) {
    this.#send = send;
  }

  /**
   * Returns a page, newest first. `cursor`: `next_cursor` of the previous page. A page may have
   * fewer deliveries than requested, even none, although more follow: continue until `next_cursor`
   * is null.
   */
  list(query: DeliveryQuery = {}): Promise<DeliveryPage> {
    return this.#send('GET', `/v1/deliveries${queryOf(query)}`);
  }

  get(id: number): Promise<DeliveryDetails> {
    return this.#send('GET', `/v1/deliveries/${id}`);
  }

  /** Sends the event again with the same event id, whatever the state of the delivery. */
  replay(id: number): Promise<Delivery> {
    return this.#send('POST', `/v1/deliveries/${id}/replay`);
  }

  /**
   * Sends the dead letters and missed events of a destination again, or with `dry_run` only counts
   * them.
   */
  replayDead(dead: ReplayRequest): Promise<{ replayed: number }> {
    return this.#send('POST', '/v1/deliveries/replay', dead);
  }
}
