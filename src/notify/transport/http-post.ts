import { setMaxListeners } from 'node:events';
import Agent from 'undici/lib/dispatcher/agent.js';
import { redactorOf } from '../../domain/redaction.ts';
import { retryAfterMs } from '../../domain/retry-after.ts';
import type { SendResult } from '../channels/channel.ts';
import { type AddressGuard, guardedConnector, type LookupAll } from './address-guard.ts';
import { causeOf, codeOf } from './connection-error.ts';
import { createLookup } from './dns.ts';
import { type Exchange, exchange, type HttpResponse } from './exchange.ts';

export type HttpPostOptions = {
  guard: AddressGuard;
  /** Of dawatch, for `user-agent`. */
  version: string;
  /** Epoch milliseconds, to read a Retry-After date by where the answer has no date. */
  now: () => number;
  /** For one whole POST, from connecting to the last byte. */
  timeoutMs?: number;
  /** The most of it that the answer's body gets once the headers are there. */
  bodyTimeoutMs?: number;
  /** Default: the hosts file and DNS. */
  lookup?: LookupAll;
};

type Post = {
  url: string;
  body: string;
  headers?: Record<string, string>;
  /** What may not stand in the response that is kept, besides parts of the URL. */
  secrets?: readonly string[];
  signal: AbortSignal;
};

export type PostResult =
  | { kind: 'answer'; httpStatus: number; retryAfterMs: number | null; response: string | null }
  /** `error`: one sentence without the URL, an address or anything that was sent. */
  | { kind: 'no_answer'; error: string };

export type HttpPost = {
  /** Never rejects; ends soon after the signal aborts. Redirects are not followed. */
  post(request: Post): Promise<PostResult>;
  /** Ends all that is under way. Idempotent. */
  close(): Promise<void>;
};

const STOPPED = 'the attempt was stopped';
const TIMEOUT_MS = 15_000;
const BODY_TIMEOUT_MS = 2_000;
const MAX_RESPONSE_BYTES = 4_096;
/** More is read than is kept: the end, where a secret may be cut in two and not be known, is thrown away. */
const READ_BYTES = 4 * MAX_RESPONSE_BYTES;
const THROWN_AWAY_CHARS = 2_048;
const MASK = '[redacted]';
const MAX_HEADER_BYTES = 16_384;
/** Many receivers close after 5 s without saying so. */
const KEEP_ALIVE_MS = 4_000;

/** POSTs JSON to hosts that are nobody's we trust: nothing they answer may hold or fill this process. */
export function createHttpPost(options: HttpPostOptions): HttpPost {
  const {
    guard,
    version,
    now,
    timeoutMs = TIMEOUT_MS,
    bodyTimeoutMs = BODY_TIMEOUT_MS,
    lookup = createLookup(),
  } = options;
  const closing = new AbortController();
  // Every open connection listens to it.
  setMaxListeners(0, closing.signal);
  const connect = guardedConnector({ guard, timeoutMs, signal: closing.signal, lookup });
  // One deadline covers the whole call. HTTP/2 is off: there, giving up a body leaves the connection open, and undici
  // would hold back further requests until the first connection has shown which version it speaks.
  const common = { connect, headersTimeout: 0, bodyTimeout: 0, maxHeaderSize: MAX_HEADER_BYTES, allowH2: false };
  const kept = new Agent({ ...common, keepAliveTimeout: KEEP_ALIVE_MS, keepAliveMaxTimeout: KEEP_ALIVE_MS });
  const fresh = new Agent({ ...common, pipelining: 0 });
  const limits = { bodyTimeoutMs, maxBytes: READ_BYTES };
  const underWay = new Set<() => void>();
  const answered = createRecently(KEEP_ALIVE_MS + bodyTimeoutMs + 2_000);

  return {
    async post({ url, body, headers = {}, secrets = [], signal }) {
      const target = URL.parse(url);
      if (!target) return { kind: 'no_answer', error: 'its address is no URL' };
      if (signal.aborted || closing.signal.aborted) return { kind: 'no_answer', error: STOPPED };
      const request = {
        method: 'POST' as const,
        origin: target.origin,
        path: `${target.pathname}${target.search}`,
        headers: {
          'user-agent': `dawatch/${version}`,
          'content-type': 'application/json',
          // What is kept of an answer is for people to read, and what is not decoded can't blow up.
          'accept-encoding': 'identity',
          ...headers,
        },
        body,
      };
      let current: Exchange | undefined;
      let ended: string | undefined;
      const end = (reason: string) => {
        ended ??= reason;
        current?.stop(new Error(reason));
      };
      const stop = () => end(STOPPED);
      const timer = setTimeout(end, timeoutMs, `no answer within ${timeoutMs / 1_000} s`);
      signal.addEventListener('abort', stop);
      underWay.add(stop);
      /**
       * A kept connection that its receiver closes just as we write says nothing about the receiver, so such a POST is made
       * again at once on a connection of its own. It may arrive twice that way, under the same id.
       */
      const ask = async (): Promise<HttpResponse> => {
        const mayBeStale = answered.wasRecently(target.origin);
        try {
          current = exchange(kept, request, limits);
          const answer = await current.response;
          answered.now(target.origin);
          return answer;
        } catch (error) {
          if (ended !== undefined || !mayBeStale || !isReset(error)) throw error;
          current = exchange(fresh, request, limits);
          return await current.response;
        }
      };
      try {
        const { httpStatus, headers: head, body: begun } = await ask();
        return {
          kind: 'answer',
          httpStatus,
          retryAfterMs: retryAfterMs({
            retryAfter: first(head['retry-after']),
            date: first(head.date) ?? new Date(now()).toUTCString(),
          }),
          response: keptOf(begun, [...secretsIn(target), ...secrets]),
        };
      } catch (error) {
        return { kind: 'no_answer', error: ended ?? causeOf(error).sentence };
      } finally {
        clearTimeout(timer);
        signal.removeEventListener('abort', stop);
        underWay.delete(stop);
      }
    },
    async close() {
      closing.abort();
      for (const stop of underWay) stop();
      await Promise.all([kept.destroy(), fresh.destroy()]);
    },
  };
}

/** The beginning of a response, without secrets. */
function keptOf(begun: Buffer, secrets: readonly string[]): string | null {
  const redacted = redactorOf(secrets, MASK)(textOf(begun));
  const knownTo = Math.max(redacted.length - THROWN_AWAY_CHARS, redacted.lastIndexOf(MASK) + MASK.length);
  const whole = begun.length < READ_BYTES ? redacted : redacted.slice(0, knownTo);
  return whole === '' ? null : textOf(Buffer.from(whole).subarray(0, MAX_RESPONSE_BYTES));
}

/** Pages of errors repeat the path that was asked for, which of a chat's webhook is the secret. */
function secretsIn({ pathname, search, searchParams }: URL): string[] {
  const parts = [...pathname.split('/').filter(isHardlyAWord), ...searchParams.values()];
  return [`${pathname}${search}`, pathname, ...parts];
}

/** "services" and "webhooks" are no secrets. */
function isHardlyAWord(segment: string): boolean {
  return segment.length >= 16 || /\d/.test(segment);
}

/** Whether something was so within the last `ms`; what is older is forgotten. */
function createRecently(ms: number) {
  const times = new Map<string, number>();
  return {
    now(name: string): void {
      times.delete(name);
      times.set(name, performance.now());
      for (const [oldest, at] of times) {
        if (performance.now() - at < ms) break;
        times.delete(oldest);
      }
    },
    wasRecently: (name: string) => performance.now() - (times.get(name) ?? Number.NEGATIVE_INFINITY) < ms,
  };
}

function textOf(begun: Buffer): string {
  // As a stream it leaves out a character that was cut in two.
  return new TextDecoder().decode(begun, { stream: true });
}

function first(value: string | string[] | undefined): string | null {
  return (Array.isArray(value) ? value[0] : value) ?? null;
}

function isReset(error: unknown): boolean {
  return ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(codeOf(error));
}

/** These ask for less, with Retry-After or without. */
const SLOW_DOWN = [429, 502, 503, 504];

/** 408 and 429 are about the receiver's load, 410 about the receiver, a redirect and any other 4xx about this request. */
function isRefusal(httpStatus: number): boolean {
  return httpStatus >= 300 && httpStatus < 500 && ![408, 410, 429].includes(httpStatus);
}

/** What an answer means, for everything that is sent by POST. */
export function toSendResult(outcome: PostResult): SendResult {
  if (outcome.kind === 'no_answer') return { kind: 'failed', httpStatus: null, error: outcome.error, response: null };
  const { httpStatus, response } = outcome;
  if (httpStatus >= 200 && httpStatus < 300) return { kind: 'delivered', httpStatus, response };
  const isRedirect = httpStatus >= 300 && httpStatus < 400;
  return {
    kind: 'failed',
    httpStatus,
    error: isRedirect ? 'a redirect, which is not followed' : `answered with ${httpStatus}`,
    response,
    ...(SLOW_DOWN.includes(httpStatus) && { slowDown: { retryAfterMs: outcome.retryAfterMs } }),
    ...(httpStatus === 410 && { gone: true }),
    ...(isRefusal(httpStatus) && { refused: true }),
  };
}
