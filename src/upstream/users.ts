import type { UpstreamResponse } from '../domain/classify.ts';
import { parseJson } from '../domain/json.ts';
import { retryAfterMs } from '../domain/retry-after.ts';
import type { UpstreamClient } from './client.ts';
import {
  isNotFound,
  type NormalizedResponse,
  normalizeUser,
  normalizeUsers,
  type UserRecord,
} from './normalize-users.ts';

export type UpstreamUsersOptions = {
  client: Pick<UpstreamClient, 'get'>;
  /** Sent with every lookup; undefined: the caller's Authorization is passed on. */
  bearer: string | undefined;
  getPath: string;
  listPath: string;
  /** Where parameters are sent; `body`: a JSON body of the GET. */
  parameters: 'query' | 'body';
};

/** The result of a lookup. `detail` is for the log: it contains no data of the request or the response. */
export type UserLookup<T> =
  | { kind: 'found'; value: T }
  | { kind: 'not_found' }
  | { kind: 'unauthorized' }
  | { kind: 'forbidden' }
  /** Too many lookups are in flight: no request was sent. */
  | { kind: 'busy' }
  | { kind: 'unavailable'; reason: UnavailableReason; detail: string; retryAfterMs: number | null };

type UnavailableReason = 'timeout' | 'network' | 'too_large' | 'http_status' | 'throttled' | 'malformed';

/** Maximum number of lookups in flight, including those that wait for a connection. Further lookups are refused, so that they do not pile up when an upstream hangs. */
const MAX_LOOKUPS = 64;
/** An upstream that ignores `limit` returns all users; about 30,000 of 250 bytes fit. Parsing more would block the event loop. */
const MAX_LISTING_BYTES = 8 * 1024 * 1024;

/** Looks up the users of one upstream. Never rejects. */
export class UpstreamUsers {
  readonly #options: UpstreamUsersOptions;
  #bearer: string | undefined;
  #lookups = 0;

  constructor(options: UpstreamUsersOptions) {
    this.#options = options;
    this.#bearer = options.bearer;
  }

  /** Sends this bearer from the next lookup on. */
  useBearer(bearer: string | undefined): void {
    this.#bearer = bearer;
  }

  async getUser(user: { name: string; email: string }, authorization?: string): Promise<UserLookup<UserRecord>> {
    // The interface requires this content type for the lookup of one user, even without a body.
    const headers = { ...this.#headers(authorization), 'content-type': 'application/json' };
    const request = this.#request(this.#options.getPath, { name: user.name, email: user.email }, headers);
    return this.#send(request, { read: normalizeUser, mayBeUnknown: true });
  }

  /** Returns at most `limit` users, even if the upstream sends more. */
  async listUsers(limit: number, authorization?: string): Promise<UserLookup<UserRecord[]>> {
    const headers = this.#headers(authorization);
    const typed = this.#options.parameters === 'body' ? { ...headers, 'content-type': 'application/json' } : headers;
    const request = { ...this.#request(this.#options.listPath, { limit }, typed), maxBytes: MAX_LISTING_BYTES };
    return this.#send(request, { read: (text) => normalizeUsers(text, limit), mayBeUnknown: false });
  }

  #headers(authorization: string | undefined): Record<string, string> {
    const sent = this.#bearer === undefined ? authorization : `Bearer ${this.#bearer}`;
    return { accept: 'application/json', ...(sent !== undefined && { authorization: sent }) };
  }

  #request(path: string, parameters: Record<string, string | number>, headers: Record<string, string>) {
    if (this.#options.parameters === 'body') return { path, headers, body: JSON.stringify(parameters) };
    const query = Object.entries(parameters).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
    return { path: `${path}?${query.join('&')}`, headers };
  }

  async #send<T>(request: Parameters<UpstreamClient['get']>[0], reading: Reading<T>): Promise<UserLookup<T>> {
    if (this.#lookups >= MAX_LOOKUPS) return { kind: 'busy' };
    this.#lookups += 1;
    try {
      return classify(await this.#options.client.get(request), reading);
    } finally {
      this.#lookups -= 1;
    }
  }
}

/** `mayBeUnknown`: whether "not found" can refer to the requested user, and not only to the path or a database. */
type Reading<T> = { read: (text: string) => NormalizedResponse<T>; mayBeUnknown: boolean };

function classify<T>(response: UpstreamResponse, reading: Reading<T>): UserLookup<T> {
  if (response.kind === 'failure') return unavailable(response.reason, response.detail);
  const waitMs = retryAfterMs(response);
  switch (response.httpStatus) {
    case 200: {
      const content = reading.read(response.body);
      return content.kind === 'malformed' ? unavailable('malformed', content.detail) : content;
    }
    case 401:
      return { kind: 'unauthorized' };
    case 403:
      return { kind: 'forbidden' };
    case 404:
      if (reading.mayBeUnknown && isOfTheService(response.body)) return { kind: 'not_found' };
      break;
    case 429:
      return unavailable('throttled', 'HTTP 429', waitMs);
    case 500:
      if (reading.mayBeUnknown && isNotFound(parseJson(response.body))) return { kind: 'not_found' };
      break;
  }
  return unavailable('http_status', `HTTP ${response.httpStatus}`, waitMs);
}

/** Responses of well-known routers for a path that does not exist. Any other text counts as the service's own. */
const ROUTER_TEXTS: readonly RegExp[] = [
  /^404 page not found$/i, // Go
  /^Cannot GET \//, // Express
  /^\{\s*"detail"\s*:\s*"Not Found"\s*\}$/, // FastAPI
  /"Route GET:\/[^"]* not found"/, // Fastify; not .*, which takes quadratic time for a hostile response
];

/** Whether the service itself sent this body: proxies and unknown paths send an HTML page or nothing. */
function isOfTheService(body: string): boolean {
  const text = body.trim();
  return text !== '' && !text.startsWith('<') && !ROUTER_TEXTS.some((pattern) => pattern.test(text));
}

function unavailable(reason: UnavailableReason, detail: string, waitMs: number | null = null) {
  return { kind: 'unavailable' as const, reason, detail, retryAfterMs: waitMs };
}
