import type { Clock } from '../lib/clock.ts';
import { StartError } from '../operations/config/start-error.ts';
import type { PolicyFactory } from '../pacing/index.ts';
import type { Classification } from '../submissions/classify.ts';
import type { SchedulerSettings } from './scheduler.ts';
import type { PollingSettings, UpstreamConfig } from './settings.ts';
import { UpstreamClient, type UpstreamClientOptions } from './upstream-client.ts';
import type { BreakerSettings } from './upstream-health.ts';
import type { WatcherSettings } from './watcher.ts';

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

/**
 * Returns the lease of a poll: the request, the time before it starts, and the way of its result
 * through Redis.
 */
export function leaseMsOf(upstream: UsableUpstream): number {
  return timeoutMsOf(upstream) * 2 + 10_000;
}

/**
 * User lookups are rare. They have their own connections, so that slow lookups do not delay polls.
 */
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
      now: () => clock.now(),
      ...options,
    });
  const clients = new Map(
    named.map(([name, upstream]) => [name, open(upstream, { apiKey: upstream.api_key })]),
  );
  const ofUsers = named.find(([name]) => name === 'default')?.[1];
  const userClient = ofUsers && open(ofUsers, { connections: USER_CONNECTIONS });
  return {
    /** The settings by name. */
    named,
    names: named.map(([name]) => name),
    /** For user lookups; undefined without an upstream `default`. */
    userClient,
    /** Sends one poll. Never rejects. */
    sendPoll(upstream: string, submissionId: string): Promise<Classification> {
      const client = clients.get(upstream);
      if (!client) throw new Error(`no client for the upstream ${upstream}`);
      return client.poll(submissionId);
    },
    /** Closes immediately; calls in flight return failures. */
    async close(): Promise<void> {
      await Promise.all([userClient, ...clients.values()].map((client) => client?.close()));
    },
  };
}

/**
 * Without rechecks, finalized submissions are polled after this time that the chain contradicts.
 */
const CONTRADICTED_RECHECK_MS = 600_000;

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
      recheckMs: submissions.recheck_after_s * 1_000 || CONTRADICTED_RECHECK_MS,
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
