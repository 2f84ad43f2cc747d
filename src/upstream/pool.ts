import Pool from 'undici/lib/dispatcher/pool.js';
import type { UpstreamResponse } from '../domain/classify.ts';
import { redactorOf } from '../domain/redaction.ts';
import { UpstreamCall } from './call.ts';

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
type UpstreamRequest = {
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
  /** By the headers of a question: most are asked with the same. */
  readonly #redactors = new WeakMap<UpstreamRequest['headers'], (text: string) => string>();

  constructor(options: UpstreamPoolOptions) {
    this.#options = options;
    const url = new URL(options.url);
    this.#prefix = url.pathname.replace(/\/+$/, '');
    // The deadline below covers the whole call; undici's own timeouts each cover a part and would only blur the reason.
    const timeouts = { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: options.timeoutMs } };
    this.#pool = new Pool(url.origin, { connections: options.connections, pipelining: 1, ...timeouts });
  }

  /** Never rejects. */
  get({ path, headers, body, maxBytes = MAX_BODY_BYTES }: UpstreamRequest): Promise<UpstreamResponse> {
    const { timeoutMs, now } = this.#options;
    const request = { method: 'GET', path: `${this.#prefix}${path}`, headers, body: body ?? null } as const;
    return new Promise((resolve) => {
      const onEnd = (answer: UpstreamResponse) => resolve(this.#without(headers, answer));
      this.#pool.dispatch(request, new UpstreamCall({ timeoutMs, maxBytes, now, onEnd }));
    });
  }

  /** An answer without the credentials of its question: what an upstream quotes of them would be kept, shown and sent on. */
  #without(headers: UpstreamRequest['headers'], answer: UpstreamResponse): UpstreamResponse {
    let redact = this.#redactors.get(headers);
    if (!redact) {
      redact = redactorOf(credentialsIn(headers));
      this.#redactors.set(headers, redact);
    }
    return answer.kind === 'failure'
      ? { ...answer, detail: redact(answer.detail) }
      : { ...answer, body: redact(answer.body) };
  }

  /** Ends at once; calls under way are answered as failures. */
  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}

function credentialsIn({ 'x-api-key': key = '', authorization = '' }: Record<string, string>): string[] {
  return [key, authorization.replace(/^Bearer +/i, '').trimEnd()];
}
