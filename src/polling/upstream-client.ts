import type { Dispatcher } from 'undici';
import { type HttpResult, httpCall } from '../lib/http-call.ts';
import { outgoingAgent } from '../lib/outgoing.ts';
import { secretsOfHeaders } from '../lib/request-headers.ts';
import { redactorOf } from '../lib/text.ts';
import { type Classification, classify } from '../submissions/classify.ts';

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
  readonly #agent: Dispatcher;
  readonly #origin: string;
  readonly #prefix: string;
  /**
   * By request headers, which are mostly the same object: making one takes half as long as a poll
   * (row polls-local).
   */
  readonly #redactors = new WeakMap<UpstreamRequest['headers'], (text: string) => string>();

  /** Of every request. Firewalls refuse requests without a `user-agent`. */
  #common: Record<string, string> = {};
  readonly #extraSecrets: string[];
  /** Of `getSubmissionInfo`. */
  readonly #headers: Record<string, string>;

  constructor(options: UpstreamClientOptions) {
    this.#options = options;
    const { apiKey, extraHeaders = {}, version } = options;
    this.#common = { ...extraHeaders, 'user-agent': `dawatch/${version}` };
    this.#extraSecrets = secretsOfHeaders(extraHeaders);
    this.#headers = {
      accept: 'application/json',
      ...(apiKey !== undefined && { 'x-api-key': apiKey }),
    };
    const url = new URL(options.url);
    this.#prefix = url.pathname.replace(/\/+$/, '');
    // The timeout of httpCall covers the whole call; undici's own timeouts would obscure the
    // reason.
    this.#origin = url.origin;
    this.#agent = outgoingAgent({
      connections: options.connections ?? null,
      connectTimeout: options.timeoutMs,
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /** GET /v1/get_submission_info. Never rejects. */
  getSubmissionInfo(submissionId: string): Promise<HttpResult> {
    const path = `/v1/get_submission_info?submission_id=${encodeURIComponent(submissionId)}`;
    return this.get({ path, headers: this.#headers });
  }

  /** Polls one submission, and returns what the upstream answered. Never rejects. */
  async poll(submissionId: string): Promise<Classification> {
    return classify(submissionId, await this.getSubmissionInfo(submissionId));
  }

  /** Never rejects: a failure is returned as a response. */
  get({ path, headers, body, maxBytes = MAX_BODY_BYTES }: UpstreamRequest): Promise<HttpResult> {
    const { timeoutMs, now } = this.#options;
    const request = {
      method: 'GET',
      origin: this.#origin,
      path: `${this.#prefix}${path}`,
      headers: { ...this.#common, ...headers },
      body: body ?? null,
    } as const;
    return new Promise((resolve) => {
      const onEnd = (response: HttpResult) => resolve(this.#redact(headers, response));
      this.#agent.dispatch(request, httpCall({ timeoutMs, maxBytes, now, onEnd }));
    });
  }

  /**
   * Removes the credentials of the request from its response, which is stored, shown and sent to
   * others.
   */
  #redact(headers: UpstreamRequest['headers'], response: HttpResult): HttpResult {
    const redact = this.#redactorFor(headers);
    return response.kind === 'failure'
      ? { ...response, detail: redact(response.detail) }
      : { ...response, body: redact(response.body) };
  }

  #redactorFor(headers: UpstreamRequest['headers']): (text: string) => string {
    const existing = this.#redactors.get(headers);
    if (existing) return existing;
    const redact = redactorOf([...credentialsIn(headers), ...this.#extraSecrets]);
    this.#redactors.set(headers, redact);
    return redact;
  }

  /** Closes immediately; calls in flight return failures. */
  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

function credentialsIn({
  'x-api-key': key = '',
  authorization = '',
}: Record<string, string>): string[] {
  return [key, authorization.replace(/^Bearer +/i, '').trimEnd()];
}
