import { brotliDecompress, type CompressCallback, unzip, zstdDecompress } from 'node:zlib';
import { buildConnector, type Dispatcher, errors, type Pool } from 'undici';
import { causeOf, codeOf } from '../lib/connection-error.ts';
import { secretsOfHeaders } from '../lib/extra-headers.ts';
import { outgoingPool } from '../lib/outgoing-connections.ts';
import { throughProxy } from '../lib/outgoing-proxy.ts';
import { redactorOf } from '../lib/text.ts';
import type { UpstreamResponse } from '../submissions/classify.ts';

/** The bytes of a response, decompressed if possible, and the headers that describe them. */
export type Content = { body: Buffer; headers: Record<string, string> };

const DESCRIBING = ['content-type', 'content-encoding', 'content-language', 'retry-after'] as const;
/**
 * Returns the content of a response, and its text. If the text contains a credential,
 * which `redact` masks, the content is the masked text instead.
 */
function contentOf(
  bytes: Buffer,
  received: ResponseHeaders,
  redact: (text: string) => string,
): Content & { text: string } {
  const headers: Record<string, string> = {};
  for (const name of DESCRIBING) {
    const [value] = [received[name]].flat();
    if (value !== undefined) headers[name] = value;
  }
  // Latin-1 has a character for every byte.
  const characters = bytes.toString('latin1');
  const masked = redact(characters);
  const body = masked === characters ? bytes : Buffer.from(masked, 'latin1');
  return { body, headers, text: textOf(body) };
}

/** Without a byte order mark, with which text is not JSON. */
function textOf(bytes: Buffer): string {
  const text = bytes.toString('utf8');
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

type Decompress = (
  bytes: Buffer,
  options: { maxOutputLength: number },
  callback: CompressCallback,
) => void;

/** By content-encoding. Servers and proxies compress also without having been asked to. */
const DECOMPRESS: Readonly<Record<string, Decompress>> = {
  gzip: unzip,
  'x-gzip': unzip,
  deflate: unzip,
  br: brotliDecompress,
  zstd: zstdDecompress,
};

const MAX_ENCODING_CHARS = 40;

/** A timer that is late by more than this shows that this process was blocked, not the upstream. */
const STALL_MS = 500;

type CallOptions = {
  /** For the whole call, from waiting for a connection to the last byte of the body. */
  timeoutMs: number;
  /** A larger response is aborted. */
  maxBytes: number;
  now: () => number;
  /**
   * Called once: with the response, an error or the timeout, whichever comes first. A response has
   * its bytes and headers.
   */
  onEnd: (response: UpstreamResponse, bytes?: Buffer, headers?: ResponseHeaders) => void;
};

type ResponseHeaders = Record<string, string | string[] | undefined>;

/**
 * One request in flight. It collects the body itself: a stream would cost 17 % of the CPU of a poll
 * (row polls-local).
 */
function upstreamCall({
  timeoutMs,
  maxBytes,
  now,
  onEnd,
}: CallOptions): Dispatcher.DispatchHandler {
  const chunks: Buffer[] = [];
  let controller: Dispatcher.DispatchController | undefined;
  let httpStatus = 0;
  let headers: ResponseHeaders = {};
  let bytes = 0;
  let isOver = false;
  let timer = startTimer();

  /**
   * If this process was blocked, a received response may be unread: the call gets the same time
   * once more.
   */
  function startTimer(): NodeJS.Timeout {
    const startedAt = performance.now();
    return setTimeout(() => {
      if (performance.now() - startedAt >= timeoutMs + STALL_MS) timer = startTimer();
      else {
        const detail = `no complete response within ${timeoutMs / 1_000} s`;
        abort({ kind: 'failure', reason: 'timeout', detail });
      }
    }, timeoutMs);
  }

  /** Aborts the connection too, because the response may never end. */
  function abort(failure: UpstreamResponse): void {
    end(failure);
    controller?.abort(new errors.RequestAbortedError());
  }

  function tooLarge(): UpstreamResponse {
    return {
      kind: 'failure',
      reason: 'too_large',
      detail: `a body of more than ${maxBytes} bytes`,
    };
  }

  /** `encoding`: a content-encoding that is not supported. */
  function respond(bytes: Buffer, encoding?: string): void {
    const date = first(headers.date) ?? new Date(now()).toUTCString();
    const retryAfter = first(headers['retry-after']);
    const response = { httpStatus, retryAfter, date, body: textOf(bytes) };
    end({ kind: 'response', ...response, ...(encoding && { encoding }) }, bytes);
  }

  function end(response: UpstreamResponse, bytes?: Buffer): void {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    onEnd(response, bytes, headers);
  }

  return {
    onRequestStart(started) {
      controller = started;
      // The timeout passed while the call waited for a connection.
      if (isOver) controller.abort(new errors.RequestAbortedError());
    },
    onResponseStart(_controller, status, received) {
      httpStatus = status;
      headers = received;
    },
    onResponseData(_controller, chunk) {
      bytes += chunk.length;
      if (bytes > maxBytes) abort(tooLarge());
      else chunks.push(chunk);
    },
    onResponseEnd() {
      const received = Buffer.concat(chunks);
      const encoding = first(headers['content-encoding'])?.toLowerCase() ?? 'identity';
      if (encoding === 'identity' || received.length === 0) return respond(received);
      const decompress = DECOMPRESS[encoding];
      if (!decompress) return respond(received, encoding.slice(0, MAX_ENCODING_CHARS));
      decompress(received, { maxOutputLength: maxBytes }, (error, bytes) => {
        if (!error) {
          headers = { ...headers, 'content-encoding': undefined };
          respond(bytes);
        } else if (codeOf(error) === 'ERR_BUFFER_TOO_LARGE') end(tooLarge());
        // It is not encoded as stated.
        else respond(received);
      });
    },
    onResponseError(_controller, error) {
      end({ kind: 'failure', reason: 'network', detail: describe(error) });
    },
  };
}

function first(value: string | string[] | undefined): string | null {
  return (Array.isArray(value) ? value[0] : value) ?? null;
}

/** Returns the address that did not respond, in parentheses; empty if the error has none. */
function peerOf(error: Error): string {
  // Of a name with several addresses, the first one.
  const one = error instanceof AggregateError ? error.errors[0] : error;
  const { address, port } = one as { address?: unknown; port?: unknown };
  if (typeof address !== 'string' || typeof port !== 'number') return '';
  return ` (${address.includes(':') ? `[${address}]` : address}:${port})`;
}

/** Describes a network error, without anything that was sent. */
function describe(error: unknown): string {
  if (error instanceof errors.ClientDestroyedError) return 'the client was closed';
  if (!(error instanceof Error)) return 'unknown failure';
  const { cause, sentence } = causeOf(error);
  if (cause !== 'other') return `${sentence}${peerOf(error)}`;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  return error.message && !error.message.includes(code)
    ? `${code}: ${error.message}`
    : error.message || code;
}

export type UpstreamClientOptions = {
  /** Base URL; its path is used as a prefix. */
  url: string;
  /** For `getSubmissionInfo`; default: none is sent. */
  apiKey?: string | undefined;
  /** The version of dawatch, for `user-agent`. */
  version: string;
  /** Sent with every request. */
  extraHeaders?: Record<string, string>;
  /** Maximum number of connections, and so of concurrent requests; default: no limit. */
  connections?: number;
  /** For a whole call, from connecting to the last byte of the body. */
  timeoutMs: number;
  now: () => number;
  /** Whether connections are used again; default: true. */
  keepAlive?: boolean;
};

/** `path` starts with a slash and is relative to the base URL. */
type UpstreamRequest = {
  path: string;
  headers: Record<string, string>;
  body?: string | undefined;
  /** A larger response is aborted. */
  maxBytes?: number;
};

/** Far above any real response about one submission or user. */
const MAX_BODY_BYTES = 1024 * 1024;

/**
 * Sends requests to one upstream within limits. Credentials are sent in headers only; redirects are
 * not followed.
 */
export class UpstreamClient {
  readonly #options: UpstreamClientOptions;
  readonly #pool: Pool;
  readonly #prefix: string;
  /**
   * By request headers, which are mostly the same object: making one takes half as long as a poll
   * (row polls-local).
   */
  #redactors = new WeakMap<UpstreamRequest['headers'], (text: string) => string>();

  /** Of every request. Firewalls refuse requests without a `user-agent`. */
  #common: Record<string, string> = {};
  #extraSecrets: string[] = [];
  /** Of `getSubmissionInfo`. */
  #headers: Record<string, string> = {};

  constructor(options: UpstreamClientOptions) {
    this.#options = options;
    this.useExtraHeaders(options.extraHeaders ?? {});
    this.useApiKey(options.apiKey);
    const url = new URL(options.url);
    this.#prefix = url.pathname.replace(/\/+$/, '');
    // The timeout of upstreamCall covers the whole call; undici's own timeouts would obscure the
    // reason.
    const { timeoutMs } = options;
    const connect = throughProxy(buildConnector({ timeout: timeoutMs }), { timeoutMs });
    const timeouts = { headersTimeout: 0, bodyTimeout: 0, connect };
    this.#pool = outgoingPool(url.origin, {
      connections: options.connections ?? null,
      // With an age, a long request would no longer count as one of `connections`.
      ...(options.keepAlive === false && { pipelining: 0, clientTtl: null }),
      ...timeouts,
    });
  }

  /** Sends this key from the next `getSubmissionInfo` on. */
  useApiKey(apiKey: string | undefined): void {
    this.#headers = {
      accept: 'application/json',
      ...(apiKey !== undefined && { 'x-api-key': apiKey }),
    };
  }

  /** Sends these headers from the next request on. */
  useExtraHeaders(headers: Record<string, string>): void {
    this.#common = { ...headers, 'user-agent': `dawatch/${this.#options.version}` };
    this.#extraSecrets = secretsOfHeaders(headers);
    this.#redactors = new WeakMap();
  }

  /** GET /v1/get_submission_info. Never rejects. */
  getSubmissionInfo(submissionId: string): Promise<UpstreamResponse> {
    const path = `/v1/get_submission_info?submission_id=${encodeURIComponent(submissionId)}`;
    return this.get({ path, headers: this.#headers });
  }

  /** Never rejects: a failure is returned as a response. */
  get({
    path,
    headers,
    body,
    maxBytes = MAX_BODY_BYTES,
  }: UpstreamRequest): Promise<UpstreamResponse> {
    const { timeoutMs, now } = this.#options;
    const request = {
      method: 'GET',
      path: `${this.#prefix}${path}`,
      headers: { ...this.#common, ...headers },
      body: body ?? null,
    } as const;
    return new Promise((resolve) => {
      const onEnd = (response: UpstreamResponse) => resolve(this.#redact(headers, response));
      this.#pool.dispatch(request, upstreamCall({ timeoutMs, maxBytes, now, onEnd }));
    });
  }

  /** Never rejects. `wasSent`: false if the upstream cannot have received any of the request. */
  post({ path, headers, body }: { path: string; headers: Record<string, string>; body: Buffer }) {
    const { timeoutMs, now } = this.#options;
    const request = {
      method: 'POST',
      path: `${this.#prefix}${path}`,
      headers: { ...this.#common, ...headers },
      body,
    } as const;
    type Posted = { response: UpstreamResponse; content: Content; wasSent: boolean };
    return new Promise<Posted>((resolve) => {
      let wasSent = false;
      const onEnd = (
        received: UpstreamResponse,
        bytes: Buffer = Buffer.alloc(0),
        receivedHeaders: ResponseHeaders = {},
      ) => {
        const { text, ...content } = contentOf(bytes, receivedHeaders, this.#redactorFor(headers));
        const response =
          received.kind === 'response'
            ? { ...received, body: text }
            : this.#redact(headers, received);
        resolve({ response, content, wasSent });
      };
      const call = upstreamCall({ timeoutMs, maxBytes: MAX_BODY_BYTES, now, onEnd });
      this.#pool.dispatch(request, {
        ...call,
        onRequestStart(controller, context) {
          wasSent = true;
          call.onRequestStart?.(controller, context);
        },
      });
    });
  }

  /**
   * Removes the credentials of the request from its response, which is stored, shown and sent to
   * others.
   */
  #redact(headers: UpstreamRequest['headers'], response: UpstreamResponse): UpstreamResponse {
    const redact = this.#redactorFor(headers);
    return response.kind === 'failure'
      ? { ...response, detail: redact(response.detail) }
      : { ...response, body: redact(response.body) };
  }

  #redactorFor(headers: UpstreamRequest['headers']): (text: string) => string {
    const known = this.#redactors.get(headers);
    if (known) return known;
    const redact = redactorOf([...credentialsIn(headers), ...this.#extraSecrets]);
    this.#redactors.set(headers, redact);
    return redact;
  }

  /** Closes immediately; calls in flight return failures. */
  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}

function credentialsIn({
  'x-api-key': key = '',
  authorization = '',
}: Record<string, string>): string[] {
  return [key, authorization.replace(/^Bearer +/i, '').trimEnd()];
}
