import { setMaxListeners } from 'node:events';
import type { Dispatcher } from 'undici';
import { type Clock, systemClock } from '../../lib/clock.ts';
import {
  binaryName,
  encodingOf,
  first,
  outgoingAgent,
  proxyVariables,
  retryAfterMs,
  sentenceOf,
} from '../../lib/http-call.ts';
import { basicAuthorization, secretsOfLogin } from '../../lib/request-headers.ts';
import { redactorOf } from '../../lib/text.ts';
import {
  type AddressGuard,
  checkHost,
  createLookup,
  guardedConnector,
  type LookupAll,
} from './address-guard.ts';

type HttpResponse = {
  httpStatus: number;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
};

type Exchange = ReturnType<typeof exchange>;

/**
 * The status decides: a body that is slow, breaks off or never ends does not change the result.
 * Dispatching directly avoids the stream of undici's `request`, which costs as much as the rest of
 * the exchange (row `webhooks` of `npm run bench`).
 */
function exchange(dispatcher: Dispatcher, request: Dispatcher.DispatchOptions, clock: Clock) {
  const { promise, resolve, reject } = Promise.withResolvers<HttpResponse>();
  const chunks: Buffer[] = [];
  let bytes = 0;
  let head: Omit<HttpResponse, 'body'> | undefined;
  let stopped: Error | undefined;
  let controller: Dispatcher.DispatchController | undefined;
  let cancelTimer = () => {};

  function end(error?: Error): void {
    cancelTimer();
    if (head) resolve({ ...head, body: Buffer.concat(chunks).subarray(0, READ_BYTES) });
    else reject(error);
  }

  /** Aborts the exchange. `response` rejects with `error` if no status has arrived. */
  function stop(error: Error): void {
    stopped ??= error;
    end(error);
    controller?.abort(error);
  }

  dispatcher.dispatch(request, {
    onRequestStart(started) {
      controller = started;
      // Without a connection the request could not be aborted.
      if (stopped) started.abort(stopped);
    },
    onResponseStart(_controller, httpStatus, headers) {
      // An informational response precedes the final one.
      if (httpStatus < 200) return;
      head = { httpStatus, headers };
      cancelTimer = clock.after(BODY_TIMEOUT_MS, () => stop(new Error('the body timed out')));
    },
    onResponseData(_controller, chunk) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > READ_BYTES) stop(new Error('the body exceeds the limit'));
    },
    onResponseEnd: () => end(),
    onResponseError: (_controller, error) => end(error),
  });
  return { response: promise, stop };
}

export type HttpPostOptions = {
  guard: AddressGuard | undefined;
  version: string;
  clock?: Clock;
  /** Limit for a whole request, from connecting to the last byte. */
  timeoutMs?: number;
  lookup?: LookupAll;
};

type Request = {
  url: string;
  headers?: Record<string, string>;
  /** Redacted in the stored response, in addition to parts of the URL. */
  secrets?: readonly string[];
  signal: AbortSignal;
};
type Post = Request & { body: string };
type Unsent = Request & { body: string | undefined };

export type PostResult =
  | { kind: 'response'; httpStatus: number; retryAfterMs: number | null; response: string | null }
  /** `error`: one sentence without the URL, an address or any sent content. */
  | { kind: 'no_response'; error: string };

export type HttpPost = ReturnType<typeof createHttpPost>;

const ABORTED = 'the attempt was aborted';
const TIMEOUT_MS = 15_000;
/** Of a response body, after the headers. */
const BODY_TIMEOUT_MS = 2_000;
const MAX_RESPONSE_BYTES = 4_096;
/** Reads more than it stores: a secret that is truncated at the end could not be recognized. */
const READ_BYTES = 4 * MAX_RESPONSE_BYTES;
const DROPPED_CHARS = 2_048;
const MASK = '[redacted]';
const MAX_HEADER_BYTES = 16_384;
/** Many receivers silently close idle connections after 5 s. */
const KEEP_ALIVE_MS = 4_000;

/** Sends requests to untrusted hosts: no response can block this process or fill its memory. */
export function createHttpPost(options: HttpPostOptions) {
  const {
    guard,
    version,
    clock = systemClock,
    timeoutMs = TIMEOUT_MS,
    lookup = createLookup(),
  } = options;
  const closing = new AbortController();
  // Every open connection adds a listener.
  setMaxListeners(0, closing.signal);
  const connect = guardedConnector({ guard, timeoutMs, signal: closing.signal, lookup });
  // A proxy resolves the name itself, so the guard cannot check the address of the connection.
  const isProxied = proxyVariables().length > 0;
  // One deadline covers the whole call. HTTP/2 is off: there, aborting a body leaves the connection
  // open, and undici delays further requests until the first connection has negotiated its version.
  const agent = outgoingAgent({
    connect,
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: MAX_HEADER_BYTES,
    allowH2: false,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
  });
  const inFlight = new Set<() => void>();
  async function send({
    url,
    body,
    headers = {},
    secrets = [],
    signal,
  }: Unsent): Promise<PostResult> {
    const target = URL.parse(url);
    if (!target) return noResponse('the URL is invalid');
    if (signal.aborted || closing.signal.aborted) return noResponse(ABORTED);
    const request = {
      method: body === undefined ? ('GET' as const) : ('POST' as const),
      origin: target.origin,
      path: `${target.pathname}${target.search}`,
      headers: {
        'user-agent': `dawatch/${version}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        // Responses are stored as text; a compressed one could expand without limit.
        'accept-encoding': 'identity',
        ...basicAuthorization(target),
        ...headers,
      },
      ...(body !== undefined && { body }),
      // Deliveries arrive at least once, so one that may have been lost is sent again at once.
      idempotent: true,
    };
    let current: Exchange | undefined;
    let ended: string | undefined;
    const end = (reason: string) => {
      ended ??= reason;
      current?.stop(new Error(reason));
    };
    const stop = () => end(ABORTED);
    const cancelTimer = clock.after(timeoutMs, () =>
      end(`no response within ${timeoutMs / 1_000} s`),
    );
    signal.addEventListener('abort', stop);
    inFlight.add(stop);
    try {
      if (guard && isProxied) await checkHost(target.hostname, guard, lookup);
      if (ended !== undefined) return noResponse(ended);
      current = exchange(agent, request, clock);
      const { httpStatus, headers: head, body: start } = await current.response;
      return {
        kind: 'response',
        httpStatus,
        retryAfterMs: retryAfterMs({
          retryAfter: first(head['retry-after']),
          date: first(head.date) ?? new Date(clock.now()).toUTCString(),
        }),
        response:
          binaryName(start, encodingOf(head)) ??
          storedText(start, [...secretsIn(target), ...secrets]),
      };
    } catch (error) {
      return noResponse(ended ?? sentenceOf(error));
    } finally {
      cancelTimer();
      signal.removeEventListener('abort', stop);
      inFlight.delete(stop);
    }
  }

  return {
    /** Posts JSON. Never rejects. Ends soon after the signal aborts. Does not follow redirects. */
    post: (post: Post): Promise<PostResult> => send(post),
    get: (options: Request): Promise<PostResult> => send({ ...options, body: undefined }),
    async close(): Promise<void> {
      closing.abort();
      for (const stop of inFlight) stop();
      await agent.destroy();
    },
  };
}

/** Returns the redacted beginning of a response body; null if it is empty. */
function storedText(start: Buffer, secrets: readonly string[]): string | null {
  if (start.length === 0) return null;
  const redacted = redactorOf(secrets, MASK)(textOf(start));
  const safeEnd = Math.max(
    redacted.length - DROPPED_CHARS,
    redacted.lastIndexOf(MASK) + MASK.length,
  );
  const whole = start.length < READ_BYTES ? redacted : redacted.slice(0, safeEnd);
  return whole === '' ? null : textOf(Buffer.from(whole).subarray(0, MAX_RESPONSE_BYTES));
}

/** Error pages repeat the requested path, which is the secret of a chat webhook. */
function secretsIn(url: URL): string[] {
  const { pathname, search, searchParams } = url;
  const parts = [...pathname.split('/').filter(mayBeSecret), ...searchParams.values()];
  return [`${pathname}${search}`, pathname, ...parts, ...secretsOfLogin(url)];
}

/** Excludes words such as "services" and "webhooks". */
function mayBeSecret(segment: string): boolean {
  return segment.length >= 16 || /\d/.test(segment);
}

function textOf(bytes: Buffer): string {
  // `stream` omits a truncated last character.
  return new TextDecoder().decode(bytes, { stream: true });
}

function noResponse(error: string): PostResult {
  return { kind: 'no_response', error };
}
