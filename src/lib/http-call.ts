import { brotliDecompress, type CompressCallback, unzip, zstdDecompress } from 'node:zlib';
import { type Dispatcher, EnvHttpProxyAgent, errors } from 'undici';

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

export type ConnectionCause =
  | 'closed'
  | 'refused'
  | 'timeout'
  | 'unreachable'
  | 'unknown_name'
  | 'dns'
  | 'tls'
  | 'headers_too_large'
  | 'not_http'
  | 'guarded'
  | 'proxy'
  | 'other';

const NOT_HTTP = 'the response is not HTTP';
const CAUSES: readonly [codes: RegExp, cause: ConnectionCause, sentence: string][] = [
  [
    /^(?:ECONNRESET|EPIPE|UND_ERR_SOCKET)$/,
    'closed',
    'the connection was closed before a response',
  ],
  [/^ECONNREFUSED$/, 'refused', 'the connection was refused'],
  [/^(?:ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, 'timeout', 'the connection timed out'],
  [/^(?:EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL)$/, 'unreachable', 'the host is unreachable'],
  [/^(?:ENOTFOUND|ENODATA)$/, 'unknown_name', 'the host name does not resolve'],
  [/^(?:EAI_|ESERVFAIL|EREFUSED|ETIMEOUT)/, 'dns', 'the DNS lookup failed'],
  [
    /^(?:ERR_TLS_|ERR_SSL_|CERT_|EPROTO|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA|CRL_)/,
    'tls',
    'TLS failed',
  ],
  [/^UND_ERR_HEADERS_OVERFLOW$/, 'headers_too_large', 'the response headers are too large'],
  [/^UND_ERR_RES_/, 'not_http', NOT_HTTP],
  // undici aborts a request if the proxy refuses it.
  [
    /^UND_ERR_(?:ABORTED|PRX_)/,
    'proxy',
    'the proxy of HTTPS_PROXY or HTTP_PROXY made no connection',
  ],
];

/** `sentence` contains neither the URL nor an address, unlike the error's message. */
export function causeOf(error: unknown): { cause: ConnectionCause; sentence: string } {
  if (error instanceof RefusedAddressError) return { cause: 'guarded', sentence: error.message };
  // undici 8 sets no code for it.
  if (error instanceof errors.HTTPParserError) return { cause: 'not_http', sentence: NOT_HTTP };
  const code = codeOf(error);
  const [, cause = 'other', known] = CAUSES.find(([codes]) => codes.test(code)) ?? [];
  if (cause === 'tls') return { cause, sentence: `${known} (${code})` };
  const sentence =
    known ?? (/^[A-Z_]+$/.test(code) ? `the request failed (${code})` : 'the request failed');
  return { cause, sentence };
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
      /** The content-encoding of a body that was not decoded; absent: it was, or has none. */
      encoding?: string;
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
  /** Called once: with the response, an error or the timeout, whichever comes first. */
  onEnd: (result: HttpResult) => void;
};

type ResponseHeaders = Record<string, string | string[] | undefined>;

/** Collects the body itself: a stream would cost 17 % of the CPU of a poll (row polls-local). */
export function httpCall({
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

  /** If this process was blocked, a response may be unread: waits once more. */
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

  /** `encoding`: a content-encoding that is not supported. */
  function respond(bytes: Buffer, encoding?: string): void {
    const date = first(headers.date) ?? new Date(now()).toUTCString();
    const retryAfter = first(headers['retry-after']);
    const response = { httpStatus, retryAfter, date, body: textOf(bytes) };
    end({ kind: 'response', ...response, ...(encoding && { encoding }) });
  }

  function end(result: HttpResult): void {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
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
      const encoding = first(headers['content-encoding'])?.toLowerCase() ?? 'identity';
      if (encoding === 'identity' || received.length === 0) return respond(received);
      const decompress = DECOMPRESS[encoding];
      if (!decompress) return respond(received, encoding.slice(0, MAX_ENCODING_CHARS));
      decompress(received, { maxOutputLength: maxBytes }, (error, bytes) => {
        if (!error) respond(bytes);
        else if (codeOf(error) === 'ERR_BUFFER_TOO_LARGE') end(tooLarge());
        // It is not encoded as stated.
        else respond(received);
      });
    },
    onResponseError(_controller, error) {
      end({ kind: 'failure', reason: 'network', detail: describe(error) });
    },
  };
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

export const MAX_RETRY_AFTER_MS = 3_600_000;

/** A number from here on is a Unix time, as several gateways send it, and not a delay. */
const UNIX_TIME_MS = 1e12;

/** Whole ms; null if absent or unusable. A time is relative to the Date header: no clock skew. */
export function retryAfterMs(response: {
  retryAfter: string | null;
  date: string | null;
}): number | null {
  const text = response.retryAfter?.trim() ?? '';
  const number = /^\d+(\.\d+)?$/.test(text) ? Number(text) * 1_000 : dateMs(text);
  const isDelay = /^\d/.test(text) && number < UNIX_TIME_MS;
  const ms = isDelay ? number : number - Date.parse(response.date ?? '');
  return ms > 0 ? Math.min(Math.ceil(ms), MAX_RETRY_AFTER_MS) : null;
}

/** NaN unless it is a date of HTTP, in the present or the obsolete format. */
function dateMs(text: string): number {
  return /^[A-Z][a-z]+, .* (?:GMT|UTC)$/.test(text) ? Date.parse(text) : Number.NaN;
}
