import type { Clock } from '../lib/clock.ts';
import { StartError } from '../operations/config/start-error.ts';
import type { PolicyFactory } from '../pacing/index.ts';
import type { Classification } from '../submissions/classify.ts';
import type { PollBatch, PollEngine } from './poll-engine.ts';
import type { BudgetSettings } from './request-budget.ts';
import type { SchedulerSettings } from './scheduler.ts';
import type { PollingSettings, UpstreamConfig } from './settings.ts';
import { UpstreamClient } from './upstream-client.ts';
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

function budgetOf({ budget }: UsableUpstream): BudgetSettings {
  return {
    requests: budget.requests,
    perMs: budget.per_s * 1_000,
    concurrency: budget.concurrency,
  };
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
  const now = () => clock.now();
  const clients = new Map(
    named.map(([name, { url, api_key: apiKey, headers: extraHeaders, ...upstream }]) => [
      name,
      new UpstreamClient({
        url,
        apiKey,
        extraHeaders,
        version,
        timeoutMs: upstream.timeout_s * 1_000,
        now,
      }),
    ]),
  );
  const { url, headers, timeout_s } = config.upstreams.default;
  const userClient =
    url === undefined
      ? undefined
      : new UpstreamClient({
          url,
          extraHeaders: headers,
          version,
          connections: USER_CONNECTIONS,
          timeoutMs: timeout_s * 1_000,
          now,
        });
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
  { submissions, upstreams: configured }: PollingSettings,
  upstreams: readonly [string, UsableUpstream][],
  policy: (settings: { lagPrice: number }) => PolicyFactory,
  breaker: BreakerSettings,
): WatcherSettings {
  const schedulerSettingsOf = (upstream: UsableUpstream): SchedulerSettings => ({
    budget: budgetOf(upstream),
    breaker,
    leaseMs: leaseMsOf(upstream),
    recheckMs: submissions.recheck_after_s * 1_000 || CONTRADICTED_RECHECK_MS,
  });
  return {
    schedulers: new Map(upstreams.map(([name, upstream]) => [name, schedulerSettingsOf(upstream)])),
    policy: (upstream) =>
      policy({ lagPrice: (configured[upstream] ?? configured.default).lag_price }),
    recheck: submissions.recheck_after_s > 0,
  };
}

/** Sends one poll to an upstream, and returns what it answered. Never rejects. */
export type SendPoll = (upstream: string, submissionId: string) => Promise<Classification>;

/**
 * Polls all submissions of a batch at once from this process. The scheduler's batches respect the
 * request budget.
 */
export function createLocalEngine(deps: {
  sendPoll: SendPoll;
  clock: { now(): number };
}): PollEngine {
  const { sendPoll, clock } = deps;
  return {
    async poll(batch: PollBatch, report) {
      await Promise.all(
        batch.submissionIds.map(async (submissionId) => {
          const sentAt = clock.now();
          const answer = await sendPoll(batch.upstream, submissionId);
          const at = clock.now();
          report({ submissionId, at, durationMs: at - sentAt, ...answer });
        }),
      );
    },
  };
}
