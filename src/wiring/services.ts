import type { Clock } from '../lib/clock.ts';
import { EventFeed } from '../notifications/event-feed.ts';
import type { Config } from '../operations/config/schema.ts';
import { logMonitor } from '../operations/logging/listeners.ts';
import type { Log } from '../operations/logging/logger.ts';
import type { Counters } from '../operations/metrics/counters.ts';
import type { Metrics } from '../operations/metrics/metrics.ts';
import { RollingHour } from '../operations/metrics/rolling-hour.ts';
import { VERSION } from '../operations/version.ts';
import type { PolicyFactory } from '../pacing/index.ts';
import { CachedLookup } from '../polling/cached-lookup.ts';
import type { Finality } from '../polling/finality.ts';
import type { WatcherListener } from '../polling/listeners.ts';
import type { SchedulerSettings } from '../polling/scheduler.ts';
import { Watcher } from '../polling/watcher.ts';
import type { Observation } from '../submissions/classify.ts';
import type { PollEngine, RecordedObservation } from '../submissions/ports.ts';
import { trackerOf } from '../submissions/tracker.ts';
import { startMaintenance } from './ledger.ts';
import type { Ledger } from './ledger-stores.ts';
import { startNotifications } from './notifications.ts';
import type { Services } from './route-services.ts';
import type { startScaling } from './scaling.ts';
import type { createTraces } from './tracing.ts';
import { budgetOf, leaseMsOf, type UsableUpstream } from './upstreams.ts';

const HOUR_MS = 3_600_000;
/**
 * Maximum finalities read at the start, the newest first. 200 per second for an hour would be
 * 720,000.
 */
const MOST_READ_BACK = 1_000_000;

/**
 * Starts the statistics that are updated with each event, for /v1/overview and /metrics. They begin
 * with the last hour of the ledger, which does not contain the detection lag of each finality.
 */
function startLiveStats(deps: { ledger: Ledger; clock: Clock; counters: Counters }) {
  const { ledger, clock, counters } = deps;
  const now = clock.now();
  const hour = new RollingHour(now);
  for (const { at, trackedAt, polls } of ledger.stats.finalizedSince(now - HOUR_MS, MOST_READ_BACK))
    hour.addFinalized({ at, timeToFinalityMs: at - trackedAt, lagMs: null, polls });
  // Registered first: the initial count reads all rows.
  ledger.stats.onEnded(counters.submissionEnded);
  ledger.stats.onCommitted(counters.transactionCommitted);
  return {
    hour,
    listener: {
      polled(upstream: string, observation: Observation): void {
        hour.addPoll(observation.at);
        counters.polled(upstream, observation);
      },
      finalized(finality: Finality): void {
        const { at, trackedAt, after, polls } = finality;
        counters.finalized(finality);
        hour.addFinalized({
          at,
          timeToFinalityMs: at - trackedAt,
          lagMs: Math.max(0, at - after),
          polls,
        });
      },
    },
  };
}

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
    const addToLookup = {
      recorded: ({ observation }: RecordedObservation) => lookup.add(observation),
    };
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

function watcherSettings(
  config: Config,
  upstreams: [string, UsableUpstream][],
  policy: ServicesDeps['policy'],
) {
  const { pacing, breaker, submissions } = config;
  const lagPrices = new Map(
    upstreams.map(([name, { lag_price }]) => [name, lag_price ?? pacing.lag_price]),
  );
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

/**
 * Logs a warning about submissions whose upstream is no longer configured. They are kept, but not
 * polled.
 */
function warnOfOrphans(ledger: Ledger, watcher: Watcher, log: Log): void {
  for (const [upstream, submissions] of ledger.submissions.watchedCounts())
    if (!watcher.hasUpstream(upstream))
      log.warn({ upstream, submissions }, 'upstream.not_configured');
}
