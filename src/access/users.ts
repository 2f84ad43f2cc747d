import { z } from 'zod';
import { type HttpResult, retryAfterMs } from '../lib/http-call.ts';
import { isObject, isTextTooDeep, parseJson } from '../lib/json.ts';
import { StartError } from '../operations/config/start-error.ts';
import { isOwnToken } from './credentials-store.ts';
import type { AccessSettings } from './settings.ts';

export type UserRecord = Record<string, unknown>;

export type NormalizedResponse<T> =
  | { kind: 'found'; value: T }
  | { kind: 'not_found' }
  | { kind: 'malformed'; detail: string };

/** An integer too large for a JavaScript number is the string of its digits. */
const recordSchema = z.looseObject({
  id: z.string().nullish(),
  name: z.string().nullish(),
  email: z.string().nullish(),
  app_id: z.union([z.int(), z.string().regex(/^-?\d{16,}$/)]).nullish(),
  assigned_wallet: z.string().nullish(),
});
/** Two are known to occur. */
const MAX_WRAPPINGS = 3;
const FIELDS = Object.keys(recordSchema.shape);

/** Reads one user: the bare record, or wrapped in `data`. */
export function normalizeUser(text: string): NormalizedResponse<UserRecord> {
  const content = read(text);
  if (content.kind !== 'found') return content;
  return toRecord(content.value);
}

/** Reads an array, bare or in `data`, `results` or `Ok`. One invalid record makes it malformed. */
export function normalizeUsers(text: string, limit: number): NormalizedResponse<UserRecord[]> {
  const content = read(text);
  // "Not found" for a list means that the upstream's database failed.
  if (content.kind === 'not_found') return malformed('a failure with HTTP 200');
  if (content.kind === 'malformed') return content;
  if (!Array.isArray(content.value)) return malformed('not a list of users');
  const users: UserRecord[] = [];
  for (const item of content.value.slice(0, limit)) {
    const record = toRecord(item);
    if (record.kind !== 'found') return malformed('a record in the list is not a user');
    users.push(record.value);
  }
  return { kind: 'found', value: users };
}

function read(text: string): NormalizedResponse<unknown> {
  return isTextTooDeep(text) ? malformed('nested too deeply') : unwrap(parseJson(text));
}

/**
 * Removes {"state","message","data"}, {"results"} and {"data"}, and within them {"Ok"}, {"Err"}.
 */
function unwrap(body: unknown, wrappingsLeft = MAX_WRAPPINGS): NormalizedResponse<unknown> {
  if (body === undefined) return malformed('not JSON');
  if (wrappingsLeft < 0) return malformed('nested in too many wrappings');
  if (!isObject(body)) return { kind: 'found', value: body };
  if ('Err' in body) return malformed('a failure with HTTP 200');
  if ('Ok' in body && !isRecord(body)) return unwrap(body.Ok, wrappingsLeft - 1);
  const { state, data, results, error } = body;
  if (isRecord(body) && !(typeof state === 'string' && isObject(data)))
    return { kind: 'found', value: body };
  if (isNotFound(body)) return { kind: 'not_found' };
  if (state === 'ERROR' || (error !== undefined && error !== null))
    return malformed('a failure with HTTP 200');
  const content = data ?? results;
  return content === undefined || content === null
    ? malformed('no content that the interface defines')
    : unwrap(content, wrappingsLeft - 1);
}

/** The interface has no status for "not found": only this text indicates it, with HTTP 500. */
function isNotFound(body: unknown): boolean {
  return (
    isObject(body) &&
    typeof body.error === 'string' &&
    body.error.trim().toLowerCase() === 'record not found'
  );
}

function isRecord(body: Record<string, unknown>): boolean {
  return FIELDS.some((field) => Object.hasOwn(body, field));
}

function toRecord(value: unknown): NormalizedResponse<UserRecord> {
  if (!isObject(value) || !isRecord(value)) return malformed('not a user');
  const parsed = recordSchema.safeParse(value);
  if (!parsed.success)
    return malformed(`a user whose ${parsed.error.issues[0]?.path.join('.')} is of another type`);
  return { kind: 'found', value };
}

function malformed(detail: string): { kind: 'malformed'; detail: string } {
  return { kind: 'malformed', detail };
}

/** Sends GET requests to the upstream; never throws. */
export type UpstreamGet = {
  get(request: {
    path: string;
    headers: Record<string, string>;
    body?: string;
    maxBytes?: number;
  }): Promise<HttpResult>;
};

/** `detail` is for the log: it contains no data of the request or the response. */
export type UserLookup<T> =
  | { kind: 'found'; value: T }
  | { kind: 'not_found' }
  | { kind: 'unauthorized' }
  | { kind: 'forbidden' }
  /** Too many lookups are in flight: no request was sent. */
  | { kind: 'busy' }
  | { kind: 'unavailable'; reason: UnavailableReason; detail: string; retryAfterMs: number | null };

type UnavailableReason =
  | 'timeout'
  | 'network'
  | 'too_large'
  | 'http_status'
  | 'throttled'
  | 'malformed';

/** Lookups in flight or waiting; more are refused, lest they pile up when an upstream hangs. */
const MAX_LOOKUPS = 64;
/** Some upstreams ignore `limit`: about 30,000 users fit. More would block the event loop. */
const MAX_LISTING_BYTES = 8 * 1024 * 1024;

/** Lookups at the upstream `default`. They never reject. */
export type Users = {
  /** Whether callers send the upstream's own token instead of one of dawatch. */
  forwards: boolean;
  /** `authorization`: of the caller; sent if it is forwarded. */
  getUser(
    user: { name: string; email: string },
    authorization?: string,
  ): Promise<UserLookup<UserRecord>>;
  /** Returns at most `limit` users, even if the upstream sends more. */
  listUsers(limit: number, authorization?: string): Promise<UserLookup<UserRecord[]>>;
};

/** `client` undefined: each lookup fails. Throws StartError if the bearer is a dawatch token. */
export function usersOf(
  { upstreams }: Pick<AccessSettings, 'upstreams'>,
  client: UpstreamGet | undefined,
): Users {
  const { bearer, users } = upstreams.default;
  if (bearer !== undefined && isOwnToken(bearer))
    throw new StartError(
      'DAWATCH_UPSTREAM_BEARER is a token of dawatch: set a token issued by the upstream',
    );
  let inFlight = 0;
  const send = async <T>(
    request: {
      path: string;
      parameters: Record<string, string | number>;
      authorization: string | undefined;
      maxBytes?: number;
    },
    reading: Reading<T>,
  ): Promise<UserLookup<T>> => {
    if (!client) return unavailable('network', 'no upstream is named default');
    if (inFlight >= MAX_LOOKUPS) return { kind: 'busy' };
    const { path, parameters, maxBytes } = request;
    const authorization = bearer === undefined ? request.authorization : `Bearer ${bearer}`;
    const isInBody = users.parameters === 'body';
    const query = Object.entries(parameters).map(
      ([name, value]) => `${name}=${encodeURIComponent(value)}`,
    );
    const headers = {
      accept: 'application/json',
      // The interface requires this type for the lookup of one user, even without a body.
      'content-type': 'application/json',
      ...(authorization !== undefined && { authorization }),
    };
    inFlight += 1;
    try {
      const response = await client.get({
        path: isInBody ? path : `${path}?${query.join('&')}`,
        headers,
        ...(isInBody && { body: JSON.stringify(parameters) }),
        ...(maxBytes && { maxBytes }),
      });
      return classify(response, reading);
    } finally {
      inFlight -= 1;
    }
  };
  return {
    forwards: bearer === undefined,
    getUser: ({ name, email }, authorization) =>
      send(
        { path: users.get_path, parameters: { name, email }, authorization },
        { read: normalizeUser, mayBeUnknown: true },
      ),
    listUsers: (limit, authorization) =>
      send(
        {
          path: users.list_path,
          parameters: { limit },
          authorization,
          maxBytes: MAX_LISTING_BYTES,
        },
        { read: (text) => normalizeUsers(text, limit), mayBeUnknown: false },
      ),
  };
}

/** `mayBeUnknown`: "not found" can refer to the user, not only to a path or a database. */
type Reading<T> = { read: (text: string) => NormalizedResponse<T>; mayBeUnknown: boolean };

function classify<T>(response: HttpResult, reading: Reading<T>): UserLookup<T> {
  if (response.kind === 'failure') return unavailable(response.reason, response.detail);
  const waitMs = retryAfterMs(response);
  switch (response.httpStatus) {
    case 200:
    case 203: {
      const content = reading.read(response.body);
      return content.kind === 'malformed' ? unavailable('malformed', content.detail) : content;
    }
    case 401:
      if (isOfTheService(response.body)) return { kind: 'unauthorized' };
      break;
    case 403:
      if (isOfTheService(response.body)) return { kind: 'forbidden' };
      break;
    case 404:
      if (reading.mayBeUnknown && isOfTheService(response.body)) return { kind: 'not_found' };
      break;
    case 429:
      return unavailable('throttled', 'HTTP 429', waitMs);
    case 500:
      if (reading.mayBeUnknown && isNotFound(parseJson(response.body)))
        return { kind: 'not_found' };
      break;
  }
  return unavailable('http_status', `HTTP ${response.httpStatus}`, waitMs);
}

/** Responses of well-known routers for a missing path. Other texts are the service's own. */
const ROUTER_TEXTS: readonly RegExp[] = [
  /^404 page not found$/i, // Go
  /^Cannot GET \//, // Express
  /^\{\s*"detail"\s*:\s*"Not Found"\s*\}$/, // FastAPI
  /"Route GET:\/[^"]* not found"/, // Fastify; not .*, which takes quadratic time for a hostile response
];

/** Proxies and unknown paths send an HTML page or nothing. */
function isOfTheService(body: string): boolean {
  const text = body.trim();
  return (
    text !== '' && !text.startsWith('<') && !ROUTER_TEXTS.some((pattern) => pattern.test(text))
  );
}

function unavailable(reason: UnavailableReason, detail: string, waitMs: number | null = null) {
  return { kind: 'unavailable' as const, reason, detail, retryAfterMs: waitMs };
}
