import { isUtf8 } from 'node:buffer';
import {
  brotliDecompress,
  type CompressCallback,
  inflateRaw,
  unzip,
  zstdDecompress,
} from 'node:zlib';
import { type Dispatcher, EnvHttpProxyAgent, errors } from 'undici';
import type { Clock } from './clock.ts';

/** Requests notice a change of DNS after this time at most, also while others keep arriving. */
const MAX_AGE_MS = 15_000;

/** Connects to any host, through the proxy that HTTPS_PROXY or HTTP_PROXY names for it. */
export function outgoingAgent(options: EnvHttpProxyAgent.Options): EnvHttpProxyAgent {
  return new EnvHttpProxyAgent({ clientTtl: MAX_AGE_MS, proxyTunnel: true, ...options });
}

/** The variables that name a proxy; undici reads them when an agent is created. */
export function proxyVariables(): [name: string, address: string][] {
  return Object.entries(process.env).filter(
    (entry): entry is [string, string] => /^https?_proxy$/i.test(entry[0]) && !!entry[1],
  );
}

/** The message contains the kind of the address, not the address. */
export class RefusedAddressError extends Error {
  override readonly name = 'RefusedAddressError';
  readonly reason: string;
  constructor(reason: string) {
    super(`refused: ${reason}`);
    this.reason = reason;
  }
}

const NOT_HTTP = 'the response is not HTTP';
const CAUSES: readonly [codes: RegExp, sentence: string][] = [
  [/^(?:ECONNRESET|EPIPE|UND_ERR_SOCKET)$/, 'the connection was closed before a response'],
  [/^ECONNREFUSED$/, 'the connection was refused'],
  [/^(?:ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, 'the connection timed out'],
  [/^(?:EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL)$/, 'the host is unreachable'],
  [/^(?:ENOTFOUND|ENODATA)$/, 'the host name does not resolve'],
  [/^(?:EAI_|ESERVFAIL|EREFUSED|ETIMEOUT)/, 'the DNS lookup failed'],
  [/^UND_ERR_HEADERS_OVERFLOW$/, 'the response headers are too large'],
  [/^UND_ERR_RES_/, NOT_HTTP],
  // undici aborts a request if the proxy refuses it.
  [/^UND_ERR_(?:ABORTED|PRX_)/, 'the proxy of HTTPS_PROXY or HTTP_PROXY made no connection'],
];
const TLS =
  /^(?:ERR_TLS_|ERR_SSL_|CERT_|EPROTO|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA|CRL_)/;

/**
 * Returns a sentence without the URL or an address, unlike the error's message; undefined for
 * another error than of the connection.
 */
export function causeOf(error: unknown): string | undefined {
  if (error instanceof RefusedAddressError) return error.message;
  // undici 8 sets no code for it.
  if (error instanceof errors.HTTPParserError) return NOT_HTTP;
  if (isTlsError(error)) return `TLS failed (${codeOf(error)})`;
  return CAUSES.find(([codes]) => codes.test(codeOf(error)))?.[1];
}

export function isTlsError(error: unknown): boolean {
  return TLS.test(codeOf(error));
}

export function sentenceOf(error: unknown): string {
  const code = codeOf(error);
  const shown = /^[A-Z_]+$/.test(code) ? ` (${code})` : '';
  return causeOf(error) ?? `the request failed${shown}`;
}

export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : '';
}

export type HttpResult =
  | {
      kind: 'response';
      httpStatus: number;
      retryAfter: string | null;
      /** The Date header: a date in Retry-After is relative to the clock of the sender. */
      date: string | null;
      body: string;
      /** What the body is instead of text, such as `xz, not decoded`; `body` is then empty. */
      binary?: string;
    }
  | { kind: 'failure'; reason: 'timeout' | 'network' | 'too_large'; detail: string };

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

/** Some servers send `deflate` without the header that RFC 9110 requires. */
const inflate: Decompress = (bytes, options, callback) =>
  unzip(bytes, options, (error, text) => {
    if (codeOf(error) === 'Z_DATA_ERROR') inflateRaw(bytes, options, callback);
    else callback(error, text);
  });

/** By content-encoding. Servers and proxies compress also without having been asked to. */
const DECOMPRESS: Readonly<Record<string, Decompress>> = {
  gzip: unzip,
  'x-gzip': unzip,
  deflate: inflate,
  br: brotliDecompress,
  zstd: zstdDecompress,
};

const GZIP = Buffer.of(0x1f, 0x8b);

/** Returns what bytes are that must not be quoted; undefined: text, in whatever character set. */
export function binaryName(bytes: Buffer, encoding: string): string | undefined {
  if (isUtf8(bytes)) return undefined;
  if (encoding !== 'identity') return `${encoding.slice(0, 40)}, not decoded`;
  return bytes.some((byte) => byte < 9) ? 'binary data' : undefined;
}

/** A timer that is late by more than this shows that this process was blocked, not the upstream. */
const STALL_MS = 500;

type CallOptions = {
  /** For the whole call, from waiting for a connection to the last byte of the body. */
  timeoutMs: number;
  /** A larger response is aborted. */
  maxBytes: number;
  clock: Clock;
  /** Called once: with the response, an error or the timeout, whichever comes first. */
  onEnd: (result: HttpResult) => void;
};

type ResponseHeaders = Record<string, string | string[] | undefined>;

/** Collects the body itself: a stream would cost 17 % of the CPU of a poll (row polls-local). */
export function httpCall({
  timeoutMs,
  maxBytes,
  clock,
  onEnd,
}: CallOptions): Dispatcher.DispatchHandler {
  const chunks: Buffer[] = [];
  let controller: Dispatcher.DispatchController | undefined;
  let httpStatus = 0;
  let headers: ResponseHeaders = {};
  let bytes = 0;
  let isOver = false;
  let cancelTimer = startTimer();

  /** If this process was blocked, a response may be unread: waits once more. */
  function startTimer(): () => void {
    const startedAt = clock.elapsed();
    return clock.after(timeoutMs, () => {
      if (clock.elapsed() - startedAt >= timeoutMs + STALL_MS) cancelTimer = startTimer();
      else {
        const detail = `no complete response within ${timeoutMs / 1_000} s`;
        abort({ kind: 'failure', reason: 'timeout', detail });
      }
    });
  }

  /** Aborts the connection too, because the response may never end. */
  function abort(failure: HttpResult): void {
    end(failure);
    controller?.abort(new errors.RequestAbortedError());
  }

  function tooLarge(): HttpResult {
    return {
      kind: 'failure',
      reason: 'too_large',
      detail: `a body of more than ${maxBytes} bytes`,
    };
  }

  /** `encoding`: a content-encoding that was not decoded. */
  function respond(bytes: Buffer, encoding = 'identity'): void {
    const date = first(headers.date) ?? new Date(clock.now()).toUTCString();
    const retryAfter = first(headers['retry-after']);
    const binary = binaryName(bytes, encoding);
    const content = binary === undefined ? { body: textOf(bytes) } : { body: '', binary };
    end({ kind: 'response', httpStatus, retryAfter, date, ...content });
  }

  function end(result: HttpResult): void {
    if (isOver) return;
    isOver = true;
    cancelTimer();
    onEnd(result);
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
      const stated = encodingOf(headers);
      const isGzip = stated === 'identity' && received.subarray(0, 2).equals(GZIP);
      const encoding = isGzip ? 'gzip' : stated;
      const decompress = DECOMPRESS[encoding];
      if (!decompress || received.length === 0) return respond(received, encoding);
      decompress(received, { maxOutputLength: maxBytes }, (error, bytes) => {
        if (!error) respond(bytes);
        else if (codeOf(error) === 'ERR_BUFFER_TOO_LARGE') end(tooLarge());
        // It is not encoded as stated.
        else respond(received, encoding);
      });
    },
    onResponseError(_controller, error) {
      end({ kind: 'failure', reason: 'network', detail: describe(error) });
    },
  };
}

export function encodingOf(headers: ResponseHeaders): string {
  return first(headers['content-encoding'])?.toLowerCase() ?? 'identity';
}

export function first(value: string | string[] | undefined): string | null {
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
function describe(error: Error): string {
  if (error instanceof errors.ClientDestroyedError) return 'the client was closed';
  return `${sentenceOf(error)}${peerOf(error)}`;
}

export const MAX_RETRY_AFTER_MS = 3_600_000;

/** A number from here on is a Unix time, as several gateways send it, and not a delay. */
const UNIX_TIME_MS = 1e12;

/** Whole ms; null if absent or unusable. A time is relative to the Date header: no clock skew. */
export function retryAfterMs(response: {
  retryAfter: string | null;
  date: string | null;
}): number | null {
  const text = response.retryAfter?.trim() ?? '';
  // A Unix time of 13 digits is in milliseconds already.
  const unit = /^\d{13}/.test(text) ? 1 : 1_000;
  const number = /^\d+(\.\d+)?$/.test(text) ? Number(text) * unit : dateMs(text);
  const isDelay = /^\d/.test(text) && number < UNIX_TIME_MS;
  const ms = isDelay ? number : number - Date.parse(response.date ?? '');
  return ms > 0 ? Math.min(Math.ceil(ms), MAX_RETRY_AFTER_MS) : null;
}

/** NaN unless it is a date of HTTP, in the present or the obsolete format. */
function dateMs(text: string): number {
  return /^[A-Z][a-z]+, .* (?:GMT|UTC)$/.test(text) ? Date.parse(text) : Number.NaN;
}
