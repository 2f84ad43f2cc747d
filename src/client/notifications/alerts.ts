import { queryOf, type SendRequest } from '../request.ts';
import type { AlertEvent } from './event-shapes.ts';

/** A condition that operators are notified of. Times are ISO 8601 in UTC. */
export type Alert = {
  /** Identifies this occurrence. When the same condition begins again, its alert has another id. */
  id: number;
  /** Such as `upstream_down`. A newer server may have more rules. */
  rule: AlertEvent['data']['alert']['rule'] | (string & {});
  /** The affected upstream or destination, or `ledger` or `all`. */
  subject: string;
  summary: string;
  /** Number of affected submissions or deliveries. */
  count: number | null;
  since: string;
  /** Whether the condition holds. */
  firing: boolean;
  resolved_at: string | null;
  acknowledged: { at: string; by: string } | null;
  /** null: it is not muted. */
  muted_until: string | null;
  /**
   * The dashboard page about it: a path on the server, or an address if `server.public_url` is set.
   */
  link: string;
};

/**
 * `state`: default "firing". `limit`: 1 to 1,000, default 100. `cursor`: `next_cursor` of the
 * previous page.
 */
export type AlertQuery = { state?: 'firing' | 'resolved' | 'all'; limit?: number; cursor?: string };
export type AlertPage = { alerts: Alert[]; next_cursor: string | null };

/** A time in which alerts are recorded and not sent. */
export type Mute = {
  id: number;
  /** null: all alerts, a maintenance window. */
  rule: string | null;
  /** null: all alerts of the rule. */
  subject: string | null;
  from: string;
  until: string;
  /** Whether it has started. */
  active: boolean;
  reason: string;
  created_at: string;
  created_by: string;
};

export type MutePage = { mutes: Mute[]; next_cursor: string | null };

/**
 * `rule` absent or null: all alerts, a maintenance window. `from`: default now. Times are ISO 8601
 * with their zone.
 */
export type NewMute = { until: string } & Partial<{
  rule: string | null;
  subject: string | null;
  from: string;
  reason: string;
}>;

/** Alerts of a dawatch server. Methods throw ApiError or ConnectionError. */
export class AlertRequests {
  readonly #send: SendRequest;

  constructor(send: SendRequest) {
    this.#send = send;
  }

  /** Returns a page, newest first. */
  list(query: AlertQuery = {}, signal?: AbortSignal): Promise<AlertPage> {
    return this.#send('GET', `/v1/alerts${queryOf(query)}`, undefined, signal);
  }

  get(id: number): Promise<Alert> {
    return this.#send('GET', `/v1/alerts/${id}`);
  }

  /**
   * No reminders are sent for the alert any more. Throws ApiError with status 409 if it is
   * resolved. Needs the role admin.
   */
  acknowledge(id: number): Promise<Alert> {
    return this.#send('POST', `/v1/alerts/${id}/acknowledge`);
  }

  /** Withdraws the acknowledgement. Needs the role admin. */
  unacknowledge(id: number): Promise<Alert> {
    return this.#send('DELETE', `/v1/alerts/${id}/acknowledge`);
  }

  /** Mutes alerts, or plans a maintenance window. Needs the role admin. */
  mute(mute: NewMute): Promise<Mute> {
    return this.#send('POST', '/v1/mutes', mute);
  }

  /** Returns a page of the mutes that have not ended, newest first. Needs the role admin. */
  mutes(query: { limit?: number; cursor?: string } = {}): Promise<MutePage> {
    return this.#send('GET', `/v1/mutes${queryOf(query)}`);
  }

  /** Ends a mute, or cancels it before its start. Needs the role admin. */
  async unmute(id: number): Promise<void> {
    await this.#send('DELETE', `/v1/mutes/${id}`);
  }
}
