import type { z } from 'zod';
import type { EventRecord } from '../event-body.ts';
import { type Message, toMessage } from '../message.ts';
import type { HttpPost, PostResult } from '../transport/http-post.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/**
 * | attempt | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 |
 * |---|---|---|---|---|---|---|---|---|---|---|
 * | delay after the previous | none | 5 s | 5 min | 30 min | 2 h | 5 h | 10 h | 14 h | 20 h | 24 h |
 */
const DELAYS_MS = [
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
] as const;

/** In milliseconds, before jitter; null after the last attempt. */
export function retryDelayMs(attempts: number): number | null {
  return DELAYS_MS[attempts - 1] ?? null;
}

/**
 * | attempt | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 to 300 |
 * |---|---|---|---|---|---|---|---|---|
 * | delay after the previous | none | 5 s | 15 s | 30 s | 1 min | 2 min | 5 min | 15 min |
 */
const PEOPLE_DELAYS_MS = [
  5 * SECOND,
  15 * SECOND,
  30 * SECOND,
  MINUTE,
  2 * MINUTE,
  5 * MINUTE,
] as const;
const [PEOPLE_MAX_DELAY_MS, PEOPLE_MAX_ATTEMPTS] = [15 * MINUTE, 300];

/**
 * For chat and mail: a message about an alert is of use for minutes. Ends after three days, too.
 */
export function peopleRetryDelayMs(attempts: number): number | null {
  if (attempts >= PEOPLE_MAX_ATTEMPTS) return null;
  return PEOPLE_DELAYS_MS[attempts - 1] ?? PEOPLE_MAX_DELAY_MS;
}

/** Applies ±20 %: what failed together is not retried together. `random` in [0, 1). */
export function jittered(delayMs: number, random: number): number {
  return Math.round(delayMs * (0.8 + 0.4 * random));
}

/** Longer than any delivery waits for its next attempt, with its jitter and a Retry-After. */
export const LONGEST_WAIT_MS = 1.2 * Math.max(...DELAYS_MS) + HOUR;

export type Outgoing = {
  event: EventRecord;
  /** The serialized event, identical in every attempt. */
  json: string;
  /** For callbacks: the `callback_url` of the submission. */
  callbackUrl: string | null;
};

/**
 * The result of one attempt. A failing receiver is expected, so failures are not thrown. `warning`:
 * one sentence about the recipients of a mail that are refused for good.
 */
export type SendResult =
  | { kind: 'delivered'; httpStatus: number | null; response: string | null; warning?: string }
  | {
      kind: 'failed';
      httpStatus: number | null;
      /** One sentence without secrets and without the URL, which may contain one. */
      error: string;
      response: string | null;
      /** The destination is paused. `retryAfterMs` null: for an unspecified time. */
      slowDown?: { retryAfterMs: number | null };
      /** The receiver is permanently gone (410). */
      gone?: boolean;
      /** This delivery is refused (such as 400) and retried; others are not affected. */
      refused?: boolean;
      /** The channel cannot serialize the event: a retry would not help. */
      undeliverable?: boolean;
    };

type FailedResult = Extract<SendResult, { kind: 'failed' }>;

export function failed(error: string, slowDown?: { retryAfterMs: number | null }): FailedResult {
  return { kind: 'failed', httpStatus: null, error, response: null, ...(slowDown && { slowDown }) };
}

export type Channel = {
  /** May contain a secret. A response counts only while the destination has this address. */
  readonly address: string;
  /** Maximum events per message. Above 1, due events of the same type are sent as one message. */
  readonly maxBatch: number;
  /** Returns the delay after the `attempts`-th attempt; null makes the delivery a dead letter. */
  retryDelayMs(attempts: number): number | null;
  /** Must end soon after `signal` aborts. Rejects only if the batch cannot be serialized. */
  send(batch: readonly Outgoing[], signal: AbortSignal): Promise<SendResult>;
  close(): Promise<void>;
};

/** What the channels of a server share. */
type ChannelDeps = {
  post: HttpPost['post'];
  /** The setting `server.public_url`, for links. */
  publicUrl: string | undefined;
};

export type ChannelType<Settings extends { type: string }> = {
  type: Settings['type'];
  settings: z.ZodType<Settings>;
  address: (settings: Settings) => string;
  /** Further text about the receiver, without secrets. */
  receiver?: (settings: Settings) => string;
  /** Throws an Error whose message begins with the name of the unusable setting. */
  create: (settings: Settings, deps: ChannelDeps) => Channel | Promise<Channel>;
  /**
   * Sends nothing. undefined: it works. `answered`: a retry does not help. Default: a GET request.
   */
  check?: (
    settings: Settings,
    limitMs: number,
  ) => Promise<{ error: string; answered: boolean } | undefined>;
};

export type ChatOptions = {
  url: string;
  post: HttpPost['post'];
  publicUrl?: string | undefined;
};

type ChatService = ChatOptions & {
  headers?: Record<string, string>;
  /** Redacted in the stored response, in addition to parts of the URL. */
  secrets?: readonly string[];
  maxBatch?: number;
  toBody: (message: Message, first: EventRecord) => unknown;
  /** Refines the result where the response contains more than the HTTP status. */
  read?: (result: SendResult) => SendResult;
};

export const CHAT_BATCH = 100;

export function createChatChannel({
  url,
  post,
  publicUrl,
  headers,
  secrets = [],
  maxBatch = CHAT_BATCH,
  toBody,
  read = (result) => result,
}: ChatService): Channel {
  return {
    address: url,
    maxBatch,
    retryDelayMs: peopleRetryDelayMs,
    async send(batch, signal) {
      const [first, ...others] = batch.map(({ event }) => event);
      if (!first) return failed('the batch is empty');
      const body = JSON.stringify(toBody(toMessage([first, ...others], publicUrl), first));
      const request = { url, body, headers: { accept: 'application/json', ...headers }, secrets };
      return read(toSendResult(await post({ ...request, signal })));
    },
    async close() {},
  };
}

/** Requests for fewer requests, with or without Retry-After. */
const SLOW_DOWN = [429, 502, 503, 504];

/** Redirects and 4xx, except 408 and 429 (load) and 410 (gone), concern this request only. */
function isRefusal(httpStatus: number): boolean {
  return httpStatus >= 300 && httpStatus < 500 && ![408, 410, 429].includes(httpStatus);
}

export function toSendResult(result: PostResult): SendResult {
  if (result.kind === 'no_response')
    return { kind: 'failed', httpStatus: null, error: result.error, response: null };
  const { httpStatus, response } = result;
  if (httpStatus >= 200 && httpStatus < 300) return { kind: 'delivered', httpStatus, response };
  const isRedirect = httpStatus >= 300 && httpStatus < 400;
  return {
    kind: 'failed',
    httpStatus,
    error: isRedirect
      ? 'responded with a redirect, which is not followed'
      : `responded with ${httpStatus}`,
    response,
    ...(SLOW_DOWN.includes(httpStatus) && { slowDown: { retryAfterMs: result.retryAfterMs } }),
    ...(httpStatus === 410 && { gone: true }),
    ...(isRefusal(httpStatus) && { refused: true }),
  };
}
