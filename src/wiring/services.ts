import type { Config } from '../config/schema.ts';
import type { Clock } from '../domain/clock.ts';
import { EventFeed } from '../http/feed/event-feed.ts';
import type { Metrics } from '../http/metrics/metrics.ts';
import { type Services, trackerOf } from '../http/services.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { logMonitor } from '../logging/listeners.ts';
import type { Log } from '../logging/logger.ts';
import type { PolicyFactory } from '../pacing/policy.ts';
import type { SchedulerSettings } from '../pacing/scheduler.ts';
import { VERSION } from '../platform/version.ts';
import { CachedLookup } from '../watch/cached-lookup.ts';
import type { WatcherListener } from '../watch/listeners.ts';
import type { PollEngine, RecordedObservation } from '../watch/ports.ts';
import { Watcher } from '../watch/watcher.ts';
import { startMaintenance } from './ledger.ts';
import { startLiveStats } from './live-stats.ts';
import { startNotifications } from './notifications.ts';
import type { startScaling } from './scaling.ts';
import type { createTraces } from './tracing.ts';
import { budgetOf, leaseMsOf, type UsableUpstream } from './upstreams.ts';

type ServicesDeps = {
  upstreams: [string, UsableUpstream][];
  engine: PollEngine;
  scaling: ReturnType<typeof startScaling> | undefined;
  traces: ReturnType<typeof createTraces> | undefined;
  clock: Clock;
  random: () => number;
  /** When to poll. */
  policy: (settings: { lagPrice: number }) => PolicyFactory;
  config: Config;
  ledger: Ledger;
  log: Log;
  metrics: Metrics;
  listeners: readonly WatcherListener[];
};

/** Starts all services. Polling begins with `watcher.start`. */
export async function startServices(deps: ServicesDeps) {
  const { upstreams, engine, scaling, traces, clock, random } = deps;
  const { config, ledger, log, metrics } = deps;
  const { counters } = metrics;
  const opened: ((leftMs: () => number) => unknown)[] = [];
  const close = async (leftMs: () => number) => {
    for (const stop of opened.splice(0).reverse()) await stop(leftMs);
  };
  try {
    const tracing = traces?.connect(ledger);
    const notifications = await startNotifications({
      config,
      ledger,
      upstreams: upstreams.map(([name]) => name),
      clock,
      random,
      log,
      version: VERSION,
      counters,
      trace: tracing?.delivery,
    });
    opened.push((leftMs) => notifications.stop(leftMs()));
    const maintenance = startMaintenance({ config, ledger, clock, log });
    opened.push(() => maintenance.stop());

    const stats = startLiveStats({ ledger, clock, counters });
    const lookup: CachedLookup = new CachedLookup({
      get: (id) => ledger.submissions.get(id),
      pollOnDemand: (upstream, id, client) => watcher.pollOnDemand(upstream, id, client),
      now: () => clock.now(),
      maxAgeMs: config.facade.max_age_s * 1_000,
    });
    const addToLookup = { recorded: ({ observation }: RecordedObservation) => lookup.add(observation) };
    const listeners = [logMonitor(log), addToLookup, stats.listener, ...deps.listeners];
    if (tracing) listeners.push(tracing.listener);
    const watcher = new Watcher({
      settings: watcherSettings(config, upstreams, deps.policy),
      ledger,
      engine,
      clock,
      random,
      listeners,
    });
    opened.push((leftMs) => watcher.stop(leftMs()));
    warnOfOrphans(ledger, watcher, log);

    const { refusalOf, publicUrl, channels } = notifications;
    const tracker = trackerOf({
      config,
      watcher,
      clock,
      refusalOf,
      isTraced: traces !== undefined,
    });
    const track = tracing ? tracing.intake(tracker.trackInParts) : tracker.trackInParts;
    const intake = scaling?.startIntake({ track, whenDurable: () => ledger.whenDurable() });
    opened.push((leftMs) => intake?.close(leftMs()));
    const feed = new EventFeed({ events: ledger.events, clock, log });
    const { hour } = stats;
    const services: Services = {
      ledger,
      watcher,
      tracker,
      lookup,
      feed,
      hour,
      refusalOf,
      publicUrl,
      channels,
    };
    return { services, notifications, close };
  } catch (error) {
    await close(() => 0);
    throw error;
  }
}

function watcherSettings(config: Config, upstreams: [string, UsableUpstream][], policy: ServicesDeps['policy']) {
  const { pacing, breaker, submissions } = config;
  const lagPrices = new Map(upstreams.map(([name, { lag_price }]) => [name, lag_price ?? pacing.lag_price]));
  const schedulerSettingsOf = (upstream: UsableUpstream): SchedulerSettings => ({
    budget: budgetOf(upstream),
    breaker: {
      failures: breaker.failures,
      probeMs: breaker.probe_after_s * 1_000,
      maxProbeMs: breaker.max_probe_s * 1_000,
    },
    leaseMs: leaseMsOf(upstream),
    recheckMs: submissions.recheck_after_s * 1_000,
  });
  return {
    schedulers: new Map(upstreams.map(([name, upstream]) => [name, schedulerSettingsOf(upstream)])),
    policy: (upstream: string) => policy({ lagPrice: lagPrices.get(upstream) ?? pacing.lag_price }),
    recheck: submissions.recheck_after_s > 0,
  };
}

/** Logs a warning about submissions whose upstream is no longer configured. They are kept, but not polled. */
function warnOfOrphans(ledger: Ledger, watcher: Watcher, log: Log): void {
  for (const [upstream, submissions] of ledger.submissions.watchedCounts())
    if (!watcher.hasUpstream(upstream)) log.warn({ upstream, submissions }, 'upstream.not_configured');
}
