import { errors, Pool } from 'undici';
import type { Answer } from '../monitor/classify.ts';
import { redact } from '../monitor/redact.ts';

/** A timer that is so late shows that this process stood still, not the upstream. */
const STALL_MS = 500;

export type UpstreamPoolOptions = {
  /** Base address; a path in it is kept as a prefix. */
  url: string;
  /** The most connections, and so the most requests at once. */
  connections: number;
  /** For one whole call, from connecting to the last byte of the body. */
  timeoutMs: number;
  now: () => number;
};

/** `path` begins with a slash, below the base address. */
type Question = {
  path: string;
  headers: Record<string, string>;
  body?: string | undefined;
  /** A larger answer is cut off unread. */
  maxBytes?: number;
};

/** Far above any real answer about one thing. */
const MAX_BODY_BYTES = 1024 * 1024;

/** Asks one upstream within limits: credentials travel in headers only, redirects are not followed, a failure is an answer too. */
export class UpstreamPool {
  readonly #options: UpstreamPoolOptions;
  readonly #pool: Pool;
  readonly #prefix: string;

  constructor(options: UpstreamPoolOptions) {
    this.#options = options;
    const url = new URL(options.url);
    this.#prefix = url.pathname.replace(/\/+$/, '');
    // The deadline below covers the whole call; undici's own timeouts each cover a part and would only blur the reason.
    const timeouts = { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: options.timeoutMs } };
    this.#pool = new Pool(url.origin, { connections: options.connections, pipelining: 1, ...timeouts });
  }

  /** Never rejects. */
  async get({ path, headers, body, maxBytes = MAX_BODY_BYTES }: Question): Promise<Answer> {
    const deadline = new AbortController();
    const leave = abortAfter(deadline, this.#options.timeoutMs);
    try {
      const response = await this.#pool.request({
        method: 'GET',
        path: `${this.#prefix}${path}`,
        headers,
        signal: deadline.signal,
        ...(body !== undefined && { body }),
      });
      const text = await readBody(response.body, maxBytes, deadline);
      if (text === undefined)
        return { kind: 'failure', reason: 'too_large', detail: `a body of more than ${maxBytes} bytes` };
      return {
        kind: 'response',
        httpStatus: response.statusCode,
        retryAfter: header(response.headers['retry-after']),
        date: header(response.headers.date) ?? new Date(this.#options.now()).toUTCString(),
        body: redact(text, credentialsIn(headers)),
      };
    } catch (error) {
      if (deadline.signal.aborted)
        return { kind: 'failure', reason: 'timeout', detail: `no whole answer within ${this.#options.timeoutMs} ms` };
      return { kind: 'failure', reason: 'network', detail: describe(error) };
    } finally {
      leave();
    }
  }

  /** Ends at once; calls under way are answered as failures. */
  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}

type Body = Awaited<ReturnType<Pool['request']>>['body'];

/** Undefined: too large. Then the connection is given up, because the rest of the body may never end. */
async function readBody(body: Body, maxBytes: number, call: AbortController): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxBytes) {
      body.on('error', () => undefined);
      body.destroy();
      return undefined;
    }
    chunks.push(chunk);
  }
  call.signal.throwIfAborted();
  return Buffer.concat(chunks).toString('utf8');
}

/** What an upstream quotes of them would be kept, shown and sent on. */
function credentialsIn({ 'x-api-key': key = '', authorization = '' }: Record<string, string>): string[] {
  return [key, authorization.replace(/^Bearer +/i, '').trimEnd()];
}

/** Who stood still for that long has not looked yet at what came meanwhile: the answer gets the same time once more. */
function abortAfter(call: AbortController, ms: number): () => void {
  const from = performance.now();
  let timer = setTimeout(() => {
    if (performance.now() - from < ms + STALL_MS) call.abort();
    else timer = setTimeout(() => call.abort(), ms);
  }, ms);
  return () => clearTimeout(timer);
}

function header(value: string | string[] | undefined): string | null {
  return (Array.isArray(value) ? value[0] : value) ?? null;
}

/** What went wrong on the way, without anything that was sent. */
function describe(error: unknown): string {
  if (error instanceof errors.ClientDestroyedError) return 'the client was closed';
  if (!(error instanceof Error)) return 'unknown failure';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  return error.message && !error.message.includes(code) ? `${code}: ${error.message}` : error.message || code;
}
