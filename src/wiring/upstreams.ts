import type { Clock } from '../lib/clock.ts';
import type { Config, UpstreamConfig } from '../operations/config/schema.ts';
import { StartError } from '../operations/config/start-error.ts';
import type { BudgetSettings } from '../polling/request-budget.ts';
import { UpstreamClient } from '../polling/upstream-client.ts';
import { UpstreamSubmitter } from '../polling/upstream-submit.ts';

export type UsableUpstream = UpstreamConfig & { url: string };

export function usableUpstreams(config: Config): [string, UsableUpstream][] {
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

/**
 * Returns the lease of a poll: the request, the time before it starts, and the way of its result
 * through Redis.
 */
export function leaseMsOf(upstream: UsableUpstream): number {
  return timeoutMsOf(upstream) * 2 + 10_000;
}

export function budgetOf({ budget }: UsableUpstream): BudgetSettings {
  return {
    requests: budget.requests,
    perMs: budget.per_s * 1_000,
    concurrency: budget.concurrency,
  };
}

export function createClient(upstream: UsableUpstream, clock: Clock): UpstreamClient {
  return new UpstreamClient({
    url: upstream.url,
    apiKey: upstream.api_key,
    timeoutMs: timeoutMsOf(upstream),
    now: () => clock.now(),
  });
}

/**
 * User lookups are rare. They have their own connections, so that slow lookups do not delay polls.
 */
const USER_CONNECTIONS = 8;

export function createUserClient(
  { url, timeout_s }: UpstreamConfig,
  clock: Clock,
): UpstreamClient | undefined {
  if (url === undefined) return undefined;
  return new UpstreamClient({
    url,
    connections: USER_CONNECTIONS,
    timeoutMs: timeout_s * 1_000,
    now: () => clock.now(),
  });
}

/**
 * Returns the upstreams that data may be submitted to. Their submits have their own connections, so
 * that they do not delay polls.
 */
export function createSubmitters(upstreams: [string, UsableUpstream][], clock: Clock) {
  const enabled = upstreams.filter(([, { submit }]) => submit.enabled);
  return new Map(
    enabled.map(([name, { url, api_key: apiKey, budget, submit, ...upstream }]) => {
      const timeoutMs = upstream.timeout_s * 1_000;
      const limits = { connections: budget.concurrency, timeoutMs, now: () => clock.now() };
      // A reused connection may be closed by the upstream during the request, which would make the
      // result of a submit unclear.
      const client = new UpstreamClient({ url, ...limits, keepAlive: false });
      return [
        name,
        { submitter: new UpstreamSubmitter({ client, apiKey }), maxBytes: submit.max_bytes },
      ] as const;
    }),
  );
}

export function upstreamClientFor(
  clients: Map<string, UpstreamClient>,
  upstream: string,
): UpstreamClient {
  const client = clients.get(upstream);
  if (!client) throw new Error(`no client for the upstream ${upstream}`);
  return client;
}
