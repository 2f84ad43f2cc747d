import type { UpstreamResponse } from '../domain/classify.ts';
import { parseJson } from '../domain/json.ts';
import { retryAfterMs } from '../domain/retry-after.ts';
import {
  type NormalizedResponse,
  normalizeUser,
  normalizeUsers,
  saysNotFound,
  type UserRecord,
} from './normalize-users.ts';
import type { UpstreamPool } from './pool.ts';

export type UpstreamUsersOptions = {
  pool: Pick<UpstreamPool, 'get'>;
  /** Sent with every lookup; undefined: the caller's own Authorization is. */
  bearer: string | undefined;
  getPath: string;
  listPath: string;
  /** Where the parameters travel; `body` is a JSON body of the GET. */
  parameters: 'query' | 'body';
};

/** What a lookup came to. `detail` is for the log: it holds nothing that was sent or answered. */
export type UserLookup<T> =
  | { kind: 'found'; value: T }
  | { kind: 'not_found' }
  | { kind: 'unauthorized' }
  | { kind: 'forbidden' }
  /** Too many are under way already: the upstream was not asked. */
  | { kind: 'busy' }
  | { kind: 'unavailable'; reason: UnavailableReason; detail: string; retryAfterMs: number | null };

type UnavailableReason = 'timeout' | 'network' | 'too_large' | 'http_status' | 'throttled' | 'malformed';

/** Under way and waiting for a connection: beyond it a lookup is refused at once, so that a hanging upstream fills nothing up. */
const MAX_LOOKUPS = 64;
/**
 * An upstream that passes over `limit` sends everybody it has: some 30,000 users of 250 bytes fit in. To parse more would
 * hold up everything else.
 */
const MAX_LISTING_BYTES = 8 * 1024 * 1024;

/** Asks one upstream about its users. Never rejects. */
export class UpstreamUsers {
  readonly #options: UpstreamUsersOptions;
  #lookups = 0;

  constructor(options: UpstreamUsersOptions) {
    this.#options = options;
  }

  async getUser(user: { name: string; email: string }, authorization?: string): Promise<UserLookup<UserRecord>> {
    // The interface has this content type on the lookup of one user even where no body goes with it.
    const headers = { ...this.#headers(authorization), 'content-type': 'application/json' };
    const question = this.#question(this.#options.getPath, { name: user.name, email: user.email }, headers);
    return this.#ask(question, { read: normalizeUser, mayBeUnknown: true });
  }

  /** Never more than `limit`, whatever the upstream sends. */
  async listUsers(limit: number, authorization?: string): Promise<UserLookup<UserRecord[]>> {
    const headers = this.#headers(authorization);
    const typed = this.#options.parameters === 'body' ? { ...headers, 'content-type': 'application/json' } : headers;
    const question = { ...this.#question(this.#options.listPath, { limit }, typed), maxBytes: MAX_LISTING_BYTES };
    return this.#ask(question, { read: (text) => normalizeUsers(text, limit), mayBeUnknown: false });
  }

  #headers(authorization: string | undefined): Record<string, string> {
    const { bearer } = this.#options;
    const sent = bearer === undefined ? authorization : `Bearer ${bearer}`;
    return { accept: 'application/json', ...(sent !== undefined && { authorization: sent }) };
  }

  #question(path: string, parameters: Record<string, string | number>, headers: Record<string, string>) {
    if (this.#options.parameters === 'body') return { path, headers, body: JSON.stringify(parameters) };
    const query = Object.entries(parameters).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
    return { path: `${path}?${query.join('&')}`, headers };
  }

  async #ask<T>(question: Parameters<UpstreamPool['get']>[0], by: Reading<T>): Promise<UserLookup<T>> {
    if (this.#lookups >= MAX_LOOKUPS) return { kind: 'busy' };
    this.#lookups += 1;
    try {
      return judge(await this.#options.pool.get(question), by);
    } finally {
      this.#lookups -= 1;
    }
  }
}

/** `mayBeUnknown`: whether "not found" can be meant of what was asked, and not of the path or a database. */
type Reading<T> = { read: (text: string) => NormalizedResponse<T>; mayBeUnknown: boolean };

function judge<T>(answer: UpstreamResponse, by: Reading<T>): UserLookup<T> {
  if (answer.kind === 'failure') return unavailable(answer.reason, answer.detail);
  const wait = retryAfterMs(answer);
  switch (answer.httpStatus) {
    case 200: {
      const content = by.read(answer.body);
      return content.kind === 'malformed' ? unavailable('malformed', content.detail) : content;
    }
    case 401:
      return { kind: 'unauthorized' };
    case 403:
      return { kind: 'forbidden' };
    case 404:
      if (by.mayBeUnknown && isOfTheService(answer.body)) return { kind: 'not_found' };
      break;
    case 429:
      return unavailable('throttled', 'HTTP 429', wait);
    case 500:
      if (by.mayBeUnknown && saysNotFound(parseJson(answer.body))) return { kind: 'not_found' };
      break;
  }
  return unavailable('http_status', `HTTP ${answer.httpStatus}`, wait);
}

/** What well-known routers say of a path that isn't there. Any other text is taken for the service's own. */
const ROUTER_TEXTS: readonly RegExp[] = [
  /^404 page not found$/i, // Go
  /^Cannot GET \//, // Express
  /^\{\s*"detail"\s*:\s*"Not Found"\s*\}$/, // FastAPI
  /"Route GET:\/[^"]* not found"/, // Fastify; not .*, whose work would grow with the square of a hostile answer
];

/** A page, or nothing at all, comes from a proxy or from a path that isn't there; the service says something. */
function isOfTheService(body: string): boolean {
  const text = body.trim();
  return text !== '' && !text.startsWith('<') && !ROUTER_TEXTS.some((pattern) => pattern.test(text));
}

function unavailable(reason: UnavailableReason, detail: string, wait: number | null = null) {
  return { kind: 'unavailable' as const, reason, detail, retryAfterMs: wait };
}
