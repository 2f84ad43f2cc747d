import type { Dispatcher } from 'undici';
import type { Clock } from '../lib/clock.ts';
import { type HttpResult, httpCall, outgoingAgent } from '../lib/http-call.ts';
import { secretsOfHeaders } from '../lib/request-headers.ts';
import { redactorOf } from '../lib/text.ts';
import { StartError } from '../operations/config/start-error.ts';
import type { PolicyFactory } from '../pacing/index.ts';
import { type Classification, classify } from '../submissions/classify.ts';
import type { SchedulerSettings } from './scheduler.ts';
import type { PollingSettings, UpstreamConfig } from './settings.ts';
import type { BreakerSettings } from './upstream-health.ts';
import type { WatcherSettings } from './watcher.ts';

export type UpstreamClientOptions = {
  /** Base URL; its path is used as a prefix. */
  url: string;
  /** For `getSubmissionInfo`; default: none is sent. */
  apiKey?: string | undefined;
  version: string;
  extraHeaders?: Record<string, string>;
  /** Maximum number of connections, and so of concurrent requests; default: no limit. */
  connections?: number;
  /** For a whole call, from connecting to the last byte of the body. */
  timeoutMs: number;
  clock: Clock;
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

/** Credentials are sent in headers only; redirects are not followed. */
export class UpstreamClient {
  readonly #options: UpstreamClientOptions;
  readonly #agent: Dispatcher;
  readonly #origin: string;
  readonly #prefix: string;
  /** For polls: making one takes half as long as a poll (row polls-local). */
  readonly #redactPoll: (text: string) => string;

  /** Of every request. Firewalls refuse requests without a `user-agent`. */
  readonly #common: Record<string, string>;
  readonly #extraSecrets: string[];
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
    this.#redactPoll = this.#redactorFor(this.#headers);
    const url = new URL(options.url);
    this.#prefix = url.pathname.replace(/\/+$/, '');
    // undici's own timeouts would obscure the reason.
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

  async poll(submissionId: string): Promise<Classification> {
    return classify(submissionId, await this.getSubmissionInfo(submissionId));
  }

  /** Never rejects: a failure is returned as a response. */
  get({ path, headers, body, maxBytes = MAX_BODY_BYTES }: UpstreamRequest): Promise<HttpResult> {
    const { timeoutMs, clock } = this.#options;
    const request = {
      method: 'GET',
      origin: this.#origin,
      path: `${this.#prefix}${path}`,
      headers: { ...this.#common, ...headers },
      body: body ?? null,
    } as const;
    return new Promise((resolve) => {
      const onEnd = (response: HttpResult) => resolve(this.#redact(headers, response));
      this.#agent.dispatch(request, httpCall({ timeoutMs, maxBytes, clock, onEnd }));
    });
  }

  /** Removes the request's credentials from its response, which is stored, shown and sent. */
  #redact(headers: UpstreamRequest['headers'], response: HttpResult): HttpResult {
    const redact = headers === this.#headers ? this.#redactPoll : this.#redactorFor(headers);
    return response.kind === 'failure'
      ? { ...response, detail: redact(response.detail) }
      : { ...response, body: redact(response.body) };
  }

  #redactorFor(headers: UpstreamRequest['headers']): (text: string) => string {
    return redactorOf([...credentialsIn(headers), ...this.#extraSecrets]);
  }

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

export type UsableUpstream = UpstreamConfig & { url: string };

function usableUpstreams(config: PollingSettings): [string, UsableUpstream][] {
  const usable = Object.entries(config.upstreams).filter(
    (entry): entry is [string, UsableUpstream] => entry[1].url !== undefined,
  );
  const unusable = Object.entries(config.upstreams).find(
    ([name, { url }]) => name !== 'default' && url === undefined,
  );
  if (unusable) throw new StartError(`upstreams.${unusable[0]} has no url`);
  if (usable.length === 0)
    throw new StartError(
      'no upstream is configured: set DAWATCH_UPSTREAM_URL and DAWATCH_UPSTREAM_API_KEY, or\n' +
        'upstreams.default in config/dawatch.yaml. To try dawatch without an upstream: npx dawatch demo, or npx dawatch sandbox',
    );
  return usable;
}

export function timeoutMsOf({ timeout_s }: UsableUpstream): number {
  return timeout_s * 1_000;
}

/** Returns the lease of a poll: request, wait before it, and way of its result through Redis. */
export function leaseMsOf(upstream: UsableUpstream): number {
  return timeoutMsOf(upstream) * 2 + 10_000;
}

/** Separate connections, so that slow lookups do not delay polls. */
const USER_CONNECTIONS = 8;

export type Upstreams = ReturnType<typeof openUpstreams>;

/** Opens the clients of all configured upstreams. Throws StartError. */
export function openUpstreams(
  config: PollingSettings,
  { clock, version }: { clock: Clock; version: string },
) {
  const named = usableUpstreams(config);
  const open = (upstream: UsableUpstream, options: Partial<UpstreamClientOptions>) =>
    new UpstreamClient({
      url: upstream.url,
      extraHeaders: upstream.headers,
      version,
      timeoutMs: timeoutMsOf(upstream),
      clock,
      ...options,
    });
  const clients = new Map(
    named.map(([name, upstream]) => [name, open(upstream, { apiKey: upstream.api_key })]),
  );
  const ofUsers = named.find(([name]) => name === 'default')?.[1];
  const userClient = ofUsers && open(ofUsers, { connections: USER_CONNECTIONS });
  return {
    named,
    names: named.map(([name]) => name),
    /** For user lookups; undefined without an upstream `default`. */
    userClient,
    sendPoll(upstream: string, submissionId: string): Promise<Classification> {
      const client = clients.get(upstream);
      if (!client) throw new Error(`no client for the upstream ${upstream}`);
      return client.poll(submissionId);
    },
    async close(): Promise<void> {
      await Promise.all([userClient, ...clients.values()].map((client) => client?.close()));
    },
  };
}

/** Returns the settings of the watcher. `policy`: when to poll. */
export function watcherSettings(
  { submissions }: PollingSettings,
  upstreams: readonly [string, UsableUpstream][],
  policy: (settings: { lagPrice: number }) => PolicyFactory,
  breaker: BreakerSettings,
): WatcherSettings {
  const schedulers = upstreams.map(([name, upstream]) => {
    const { requests, per_s, concurrency } = upstream.budget;
    const settings: SchedulerSettings = {
      budget: { requests, perMs: per_s * 1_000, concurrency },
      breaker,
      leaseMs: leaseMsOf(upstream),
      recheckMs: submissions.recheck_after_s * 1_000,
    };
    return [name, settings] as const;
  });
  const prices = new Map(upstreams.map(([name, { lag_price }]) => [name, lag_price]));
  return {
    schedulers: new Map(schedulers),
    policy: (upstream) => policy({ lagPrice: prices.get(upstream) ?? 1 }),
    recheck: submissions.recheck_after_s > 0,
  };
}
