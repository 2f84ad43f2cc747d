import type {
  AuditPage,
  Overview,
  Pacing,
  Proof,
  Submission,
  SubmissionCount,
  SubmissionPage,
  SubmissionPatch,
  FoundSubmissions as SubmissionsOfLookup,
  SubmissionWithHistory,
  TrackedSubmissions,
  TrackItem,
  User,
} from './api.ts';
import { waitUntilFinal } from './backoff.ts';
import { bodyOf, noResponse, notDawatchError, toApiError } from './errors.ts';
import { type EventOptions, type FeedEvent, type OpenStream, readEvents } from './events.ts';
import {
  type AuditQuery,
  type FoundSubmissions,
  filterQuery,
  pathOf,
  queryOf,
  type SendRequest,
  type SubmissionFilter,
  type SubmissionQuery,
} from './request.ts';
import { type Resources, resourcesOf } from './resources.ts';
import { type TrackOptions, track } from './track.ts';
import { FINAL_TYPES, untilFinal } from './until-final.ts';

export type DawatchClientOptions = {
  /** Base address of the server, such as http://127.0.0.1:8080. */
  url: string;
  /**
   * Credential for submissions and events, with the role service or admin, or operator for reading.
   */
  apiKey?: string | undefined;
  /** Token for users, webhooks, deliveries and other routes of admins. Default: `apiKey`. */
  token?: string | undefined;
};

/** The largest `limit` of a list, and the most ids of one lookup, which proxies then allow. */
const MAX_PAGE = 1_000;
/** Timeout of a request without a long poll. */
const CALL_TIMEOUT_MS = 60_000;
/** Added to the duration of a long poll. */
const RESPONSE_MARGIN_MS = 5_000;

/** Throws TypeError without the address, which may contain a password. */
function baseOf(url: string): string {
  if (url.includes('@')) throw new TypeError('url must not contain a user name or a password');
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    throw new TypeError('url must be an http:// or https:// address');
  return url.replace(/\/+$/, '');
}

/**
 * Client of a dawatch server, based on the platform's fetch. Methods throw ApiError or
 * ConnectionError.
 */
export class DawatchClient {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  /** Webhooks. Changes need the role admin, reading the role operator. */
  readonly webhooks: Resources['webhooks'];
  /** Deliveries of events and their results. Replays need the role admin. */
  readonly deliveries: Resources['deliveries'];
  /** Alerts and mutes. Changes need the role admin. */
  readonly alerts: Resources['alerts'];
  /** Channels of the settings. Tests need the role admin. */
  readonly channels: Resources['channels'];
  /** Tokens of clients. Needs the role admin. */
  readonly credentials: Resources['credentials'];

  constructor(options: DawatchClientOptions) {
    this.#url = baseOf(options.url);
    const { apiKey, token = apiKey } = options;
    // If a request has both, the route determines which one counts.
    this.#headers = {
      ...(apiKey !== undefined && { 'x-api-key': apiKey }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      accept: 'application/json',
    };
    const resources = resourcesOf(this.#send);
    this.webhooks = resources.webhooks;
    this.deliveries = resources.deliveries;
    this.alerts = resources.alerts;
    this.channels = resources.channels;
    this.credentials = resources.credentials;
  }

  /**
   * Tracks submissions, in requests of at most 1,000 and 900 kB, which proxies let through. They
   * are on the server's disk when the promise resolves; repeat the call if it rejects. Each is an
   * id, or an object with options of its own; `options` apply to those without such an option of
   * their own.
   */
  track(
    submissions: readonly (string | TrackItem)[],
    options: TrackOptions = {},
  ): Promise<TrackedSubmissions> {
    return track(this.#send, submissions, options);
  }

  /** Returns a submission with its history. */
  get(submissionId: string): Promise<SubmissionWithHistory> {
    return this.#request<SubmissionWithHistory>('GET', pathOf(submissionId));
  }

  /**
   * Returns a page of submissions that match the filter, newest first. Filters by a time order the
   * page by that time, and `prefix` orders it by id. `limit`: 1 to 1,000, default 100. `cursor`:
   * `next_cursor` of the previous page. A page may have fewer submissions although more follow: use
   * `listAll`, or continue until `next_cursor` is null.
   */
  list(query: SubmissionQuery = {}): Promise<SubmissionPage> {
    return this.#request('GET', `/v1/submissions${filterQuery(query)}`);
  }

  /** Yields all submissions that match the filter, in the order of `list`. */
  async *listAll(filter: SubmissionFilter = {}): AsyncGenerator<Submission, void, undefined> {
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page: SubmissionPage = await this.list({ ...filter, limit: MAX_PAGE, cursor });
      yield* page.submissions;
      cursor = page.next_cursor;
    }
  }

  /**
   * Returns the number of submissions that match the filter. Counting a million takes many
   * requests, except by status alone.
   */
  async count(filter: SubmissionFilter = {}): Promise<number> {
    let total = 0;
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const path = `/v1/submission_count${filterQuery({ ...filter, cursor })}`;
      const part = await this.#request<SubmissionCount>('GET', path);
      total += part.count;
      cursor = part.next_cursor;
    }
    return total;
  }

  /**
   * Returns the proof that a block contains the data of a submission; `@dawatch/client/proof`
   * verifies it. Rejects with an ApiError of status 404 while there is none.
   */
  proof(submissionId: string, signal?: AbortSignal): Promise<Proof> {
    return this.#request<Proof>('GET', `${pathOf(submissionId)}/proof`, { signal });
  }

  /** Returns the submissions of these ids without their histories, in requests of up to 1,000. */
  async lookup(submissionIds: readonly string[], signal?: AbortSignal): Promise<FoundSubmissions> {
    const found: FoundSubmissions = { submissions: [], not_found: [] };
    for (let remaining = submissionIds; remaining.length > 0; ) {
      const body = { submission_ids: remaining.slice(0, MAX_PAGE) };
      const part = await this.#request<SubmissionsOfLookup>('POST', '/v1/submissions/lookup', {
        body,
        signal,
      });
      found.submissions.push(...part.submissions);
      found.not_found.push(...part.not_found);
      remaining = [...part.remaining, ...remaining.slice(MAX_PAGE)];
    }
    return found;
  }

  /**
   * Waits until the submission is final, at most `timeoutS` (0 to 240), and returns its current
   * state.
   */
  wait(submissionId: string, timeoutS: number, signal?: AbortSignal): Promise<Submission> {
    const timeoutMs = timeoutS * 1_000 + RESPONSE_MARGIN_MS;
    return this.#request<Submission>('GET', `${pathOf(submissionId)}/wait?timeout_s=${timeoutS}`, {
      signal,
      timeoutMs,
    });
  }

  /**
   * Waits until the submission is final, at most `timeoutMs` (default: no limit), and returns its
   * current state: check `status`. Tolerates outages of the server up to a minute. Rejects with the
   * signal's reason if the signal aborts.
   */
  waitUntilFinal(
    submissionId: string,
    options: { timeoutMs?: number; signal?: AbortSignal } = {},
  ): Promise<Submission> {
    return waitUntilFinal((timeoutS) => this.wait(submissionId, timeoutS, options.signal), options);
  }

  /**
   * Yields each of the submissions, which may be thousands, when it is final, at once if it is
   * final already, and ends after the last one. Tolerates outages of the server up to a minute.
   * Throws an ApiError with status 404 if an id is not tracked, and the signal's reason if the
   * signal aborts.
   */
  untilFinal(
    submissionIds: Iterable<string>,
    { signal }: { signal?: AbortSignal | undefined } = {},
  ): AsyncGenerator<Submission, void, undefined> {
    return untilFinal(submissionIds, {
      openStream: this.#streamOf({ types: FINAL_TYPES }),
      lookup: (ids, stop) => this.lookup(ids, stop),
      wait: (id, stop) => this.wait(id, 1, stop),
      signal,
    });
  }

  /**
   * Yields every event of the live feed once and in order, from `after` or from now on. Reconnects
   * after connection losses and restarts of the server. Ends when the signal aborts. Throws
   * ApiError for permanent errors: a refused key or filter.
   */
  events(options: EventOptions = {}): AsyncGenerator<FeedEvent, void, undefined> {
    return readEvents(this.#streamOf(options), options);
  }

  /** Returns a function that opens the live feed of these events. */
  #streamOf({ types, submissionId: submission_id, metadata }: EventOptions): OpenStream {
    const filter = queryOf({
      type: types?.join(','),
      submission_id,
      metadata: metadata && JSON.stringify(metadata),
    });
    return async (after, signal) => {
      const resumed = after === undefined ? {} : { 'last-event-id': after };
      const headers = { ...this.#headers, accept: 'text/event-stream', ...resumed };
      const response = await this.#fetch('GET', `/v1/events${filter}`, { headers, signal });
      if (!response.ok) throw await toApiError(response, this.#url);
      if (!response.headers.get('content-type')?.startsWith('text/event-stream'))
        throw notDawatchError(response, this.#url);
      return response;
    };
  }

  /**
   * Changes options of a submission; absent ones stay. Throws ApiError with status 409 for time
   * limits of an ended submission.
   */
  update(submissionId: string, patch: SubmissionPatch): Promise<Submission> {
    return this.#request<Submission>('PATCH', pathOf(submissionId), { body: patch });
  }

  /** Stops tracking. A final submission is not changed. */
  cancel(submissionId: string): Promise<Submission> {
    return this.#request<Submission>('DELETE', pathOf(submissionId));
  }

  /** Returns the learned finality model of each upstream. */
  pacing(): Promise<Pacing> {
    return this.#request('GET', '/v1/pacing');
  }

  /** Returns current counts, and what became final in the last hour. */
  overview(signal?: AbortSignal): Promise<Overview> {
    return this.#request<Overview>('GET', '/v1/overview', { signal, timeoutMs: 10_000 });
  }

  /**
   * Returns the upstream's user with this name and e-mail address. Needs the role user or admin.
   */
  getUser(user: { name: string; email: string }): Promise<User> {
    return this.#request<User>('GET', `/users/get_user?${new URLSearchParams(user)}`);
  }

  /** Returns at most `limit` users, 1 to 1,000. Needs the role admin. */
  listUsers(limit: number): Promise<User[]> {
    return this.#request<User[]>('GET', `/admin/get_all_users?limit=${limit}`);
  }

  /**
   * Returns a page of the audit, newest first. With conditions it may be short although more
   * follow. Needs the role admin.
   */
  audit(query: AuditQuery = {}): Promise<AuditPage> {
    return this.#request('GET', `/v1/audit${queryOf(query)}`);
  }

  readonly #send: SendRequest = (method, path, body, signal) =>
    this.#request(method, path, { body, signal });

  /** Returns undefined for a response without a body. */
  async #request<T>(
    method: string,
    path: string,
    options: { body?: unknown; signal?: AbortSignal | undefined; timeoutMs?: number } = {},
  ): Promise<T> {
    const { body, signal, timeoutMs = CALL_TIMEOUT_MS } = options;
    const response = await this.#fetch(method, path, {
      headers: {
        ...this.#headers,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(signal ? [signal] : [])]),
    });
    if (response.status === 204) return undefined as T;
    return bodyOf<T>(response, this.#url, signal);
  }

  async #fetch(method: string, path: string, init: RequestInit): Promise<Response> {
    try {
      const headers = { ...(init.headers as Record<string, string>) };
      // A redirect is not followed, because the credential belongs to this address.
      return await fetch(`${this.#url}${path}`, { ...init, headers, method, redirect: 'manual' });
    } catch (error) {
      const isTimeout = error instanceof DOMException && error.name === 'TimeoutError';
      if (!isTimeout) init.signal?.throwIfAborted();
      throw noResponse(this.#url, error);
    }
  }
}
