import { pause, retryDelayMs } from './backoff.ts';
import { DeliveryRequests } from './deliveries.ts';
import { ConnectionError, isTransient, notDawatchError, toApiError } from './errors.ts';
import { type EventOptions, type FeedEvent, readEvents } from './events.ts';
import type { Overview } from './overview.ts';
import { queryOf, type SendRequest } from './request.ts';
import {
  type AuditEntry,
  isFinal,
  type Submission,
  type SubmissionPage,
  type SubmissionWithHistory,
  type Tracked,
  type TrackOptions,
  type UpstreamPacing,
  type User,
} from './shapes.ts';
import { WebhookRequests } from './webhooks.ts';

export { ApiError, ConnectionError } from './errors.ts';
export type { Overview } from './overview.ts';
export type {
  AuditEntry,
  PollingCost,
  Submission,
  SubmissionWithHistory,
  TrackOptions,
  UpstreamPacing,
  User,
} from './shapes.ts';

export type DawatchClientOptions = {
  /** Where the server is: http://127.0.0.1:8080, say. */
  url: string;
  /** Goes with what is about submissions and events; needs the role service, or admin. */
  apiKey?: string;
  /** Goes as a bearer with what is about users, webhooks and deliveries. Default: the same as `apiKey`. */
  token?: string;
};

/** What one long poll waits: below the 60 s after which proxies give up on an answer. */
const LONG_POLL_S = 20;
/** How long a server may be away, as while it is restarted, before waiting for it is given up. */
const PATIENCE_MS = 60_000;

/** A server that has not answered by then is as good as away. */
const CALL_TIMEOUT_MS = 60_000;
/** Beyond the time that a long poll takes by itself. */
const ANSWER_MARGIN_MS = 5_000;

/** Talks to a dawatch server. Uses nothing beyond the platform's fetch. Methods throw ApiError or ConnectionError. */
export class DawatchClient {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #token: string | undefined;
  /** Whom events are sent to. Needs the role admin. */
  readonly webhooks: WebhookRequests;
  /** Which event was sent where, and what came of it. Needs the role admin. */
  readonly deliveries: DeliveryRequests;

  constructor(options: DawatchClientOptions) {
    this.#url = options.url.replace(/\/+$/, '');
    this.#headers = {
      ...(options.apiKey !== undefined && { 'x-api-key': options.apiKey }),
      accept: 'application/json',
    };
    this.#token = options.token ?? options.apiKey;
    const ask: SendRequest = (method, path, body) => this.#requestWithToken(method, path, body);
    this.webhooks = new WebhookRequests(ask);
    this.deliveries = new DeliveryRequests(ask);
  }

  /** Up to 10,000 ids, taken whole or not at all. Once it resolves they are on the server's disk. */
  track(submissionIds: readonly string[], options: TrackOptions = {}): Promise<Tracked> {
    return this.#request<Tracked>('POST', '/v1/submissions', {
      body: { submission_ids: submissionIds, ...options },
    });
  }

  /** One submission with its history. */
  get(submissionId: string): Promise<SubmissionWithHistory> {
    return this.#request<SubmissionWithHistory>('GET', pathOf(submissionId));
  }

  /**
   * Newest first, up to `limit` (1 to 1,000, default 100); `cursor` is the `next_cursor` of the page before. With `prefix`
   * (not with `status` too): those whose ids begin so, in the order of the ids.
   */
  list(
    query: { status?: string | undefined; prefix?: string; limit?: number; cursor?: string } = {},
  ): Promise<SubmissionPage> {
    return this.#request('GET', `/v1/submissions${queryOf(query)}`);
  }

  /** Resolves once it is final, or after `timeoutS` (0 to 240) with the submission as it is then. */
  wait(submissionId: string, timeoutS: number, signal?: AbortSignal): Promise<Submission> {
    const timeoutMs = timeoutS * 1_000 + ANSWER_MARGIN_MS;
    return this.#request<Submission>('GET', `${pathOf(submissionId)}/wait?timeout_s=${timeoutS}`, {
      signal,
      timeoutMs,
    });
  }

  /**
   * Resolves once it is final, or after `timeoutMs` (default: never) with the submission as it is then: look at `status`.
   * A server that goes away meanwhile is waited for, up to a minute. Rejects with the signal's reason if that aborts.
   */
  async waitUntilFinal(
    submissionId: string,
    options: { timeoutMs?: number; signal?: AbortSignal } = {},
  ): Promise<Submission> {
    const { timeoutMs = Number.POSITIVE_INFINITY, signal } = options;
    const endsAt = performance.now() + timeoutMs;
    let answeredAt = performance.now();
    for (let failures = 0; ; ) {
      const askedAt = performance.now();
      const leftMs = Math.max(0, endsAt - askedAt);
      const waitS = Math.min(LONG_POLL_S, Math.ceil(leftMs / 1_000));
      try {
        const submission = await this.wait(submissionId, waitS, signal);
        if (isFinal(submission.status) || leftMs === 0) return submission;
        answeredAt = performance.now();
        // A server that closes answers before its time.
        failures = answeredAt - askedAt < waitS * 500 ? 1 : 0;
      } catch (error) {
        if (signal?.aborted || !isTransient(error) || performance.now() - answeredAt > PATIENCE_MS) throw error;
        if (leftMs === 0) throw error;
        failures += 1;
      }
      if (failures > 0) await pause(Math.min(retryDelayMs(failures, Math.random), leftMs), signal);
    }
  }

  /**
   * The live feed: every event once and in order, from `after` or from now on, over cut connections and restarts of the
   * server. Ends when the signal aborts. Throws ApiError for what another try wouldn't mend: a refused key or filter.
   */
  events(options: EventOptions = {}): AsyncGenerator<FeedEvent, void, undefined> {
    const { types, submissionId: submission_id, metadata } = options;
    const filter = queryOf({ type: types?.join(','), submission_id, metadata: metadata && JSON.stringify(metadata) });
    return readEvents(async (after, signal) => {
      const resumed = after === undefined ? {} : { 'last-event-id': after };
      const headers = { ...this.#headers, accept: 'text/event-stream', ...resumed };
      const response = await this.#fetch('GET', `/v1/events${filter}`, { headers, signal });
      if (!response.ok) throw await toApiError(response, this.#url);
      if (!response.headers.get('content-type')?.startsWith('text/event-stream'))
        throw notDawatchError(response, this.#url);
      return response;
    }, options);
  }

  /** Stops asking about it; one that is final already stays as it is. */
  cancel(submissionId: string): Promise<Submission> {
    return this.#request<Submission>('DELETE', pathOf(submissionId));
  }

  /** What is learned about each upstream, and why the next request goes where it goes. */
  pacing(): Promise<{ at: string; upstreams: UpstreamPacing[] }> {
    return this.#request('GET', '/v1/pacing');
  }

  /** What is going on, and how the last hour was. */
  overview(signal?: AbortSignal): Promise<Overview> {
    return this.#request<Overview>('GET', '/v1/overview', { signal, timeoutMs: 10_000 });
  }

  /** The user of this name and address, at the upstream. Needs the role user or admin. */
  getUser(user: { name: string; email: string }): Promise<User> {
    return this.#requestWithToken<User>('GET', `/users/get_user?${new URLSearchParams(user)}`);
  }

  /** At most `limit` users, from 1 to what the server's setting `users.max_limit` allows. Needs the role admin. */
  listUsers(limit: number): Promise<User[]> {
    return this.#requestWithToken<User[]>('GET', `/admin/get_all_users?limit=${limit}`);
  }

  /** Who looked up which users, newest first. Needs the role admin. */
  audit(query: { limit?: number; cursor?: string } = {}): Promise<{
    entries: AuditEntry[];
    next_cursor: string | null;
  }> {
    return this.#requestWithToken('GET', `/v1/audit${queryOf(query)}`);
  }

  #requestWithToken<T>(method: string, path: string, body?: unknown): Promise<T> {
    const credential = this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` };
    return this.#request<T>(method, path, { body, headers: { accept: 'application/json', ...credential } });
  }

  /** `headers`: instead of those with the api key. An answer without a body is undefined. */
  async #request<T>(
    method: string,
    path: string,
    options: {
      body?: unknown;
      headers?: Record<string, string>;
      signal?: AbortSignal | undefined;
      timeoutMs?: number;
    } = {},
  ): Promise<T> {
    const { body, headers = this.#headers, signal, timeoutMs = CALL_TIMEOUT_MS } = options;
    const response = await this.#fetch(method, path, {
      headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
      ...(body !== undefined && { body: toJson(body) }),
      signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(signal ? [signal] : [])]),
    });
    if (!response.ok) throw await toApiError(response, this.#url);
    if (response.status === 204) return undefined as T;
    const answer: unknown = await response.json().catch(() => undefined);
    signal?.throwIfAborted();
    if (typeof answer !== 'object' || answer === null) throw notDawatchError(response, this.#url);
    return answer as T;
  }

  async #fetch(method: string, path: string, init: RequestInit): Promise<Response> {
    try {
      return await fetch(`${this.#url}${path}`, { ...init, method, redirect: 'error' });
    } catch (error) {
      const isTimeout = error instanceof DOMException && error.name === 'TimeoutError';
      if (!isTimeout) init.signal?.throwIfAborted();
      throw new ConnectionError(`no answer from ${this.#url}`, { cause: error });
    }
  }
}

/** Throws TypeError for what JSON can not hold: a circle, or so many levels that writing it would overflow the stack. */
function toJson(body: unknown): string {
  try {
    return JSON.stringify(body);
  } catch (cause) {
    throw new TypeError('the request can not be written as JSON: it contains itself, or is nested too deeply', {
      cause,
    });
  }
}

function pathOf(submissionId: string): string {
  return `/v1/submissions/${encodeURIComponent(submissionId)}`;
}
