import { Pool } from 'undici';
import { redactorOf } from '../lib/redaction.ts';
import type { UpstreamResponse } from '../submissions/classify.ts';
import { type ResponseHeaders, upstreamCall } from './upstream-call.ts';
import { type Content, contentOf } from './upstream-content.ts';

export type UpstreamClientOptions = {
  /** Base URL; its path is used as a prefix. */
  url: string;
  /** For `getSubmissionInfo`; default: none is sent. */
  apiKey?: string | undefined;
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
  readonly #redactors = new WeakMap<UpstreamRequest['headers'], (text: string) => string>();

  /** Of `getSubmissionInfo`. */
  #headers: Record<string, string> = {};

  constructor(options: UpstreamClientOptions) {
    this.#options = options;
    this.useApiKey(options.apiKey);
    const url = new URL(options.url);
    this.#prefix = url.pathname.replace(/\/+$/, '');
    // The timeout of upstreamCall covers the whole call; undici's own timeouts would obscure the
    // reason.
    const timeouts = { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: options.timeoutMs } };
    this.#pool = new Pool(url.origin, {
      connections: options.connections ?? null,
      pipelining: options.keepAlive === false ? 0 : 1,
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
      headers,
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
    const request = { method: 'POST', path: `${this.#prefix}${path}`, headers, body } as const;
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
    const redact = redactorOf(credentialsIn(headers));
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
