import type { Clock } from '../lib/clock.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import { VERSION } from '../operations/version.ts';
import { eventPacing, type PolicyFactory } from '../pacing/index.ts';
import { chainEngine, openChains } from '../polling/chain/chains.ts';
import { logMonitor, type WatcherListener } from '../polling/listeners.ts';
import { CachedLookup, ON_DEMAND_WAIT_MS } from '../polling/on-demand-polls.ts';
import type { PollEngine } from '../polling/poll-engine.ts';
import { leaseMsOf, type Upstreams, watcherSettings } from '../polling/upstreams.ts';
import { Watcher } from '../polling/watcher.ts';
import type { Ledger } from './ledger-stores.ts';
import type { Config, Tuning } from './settings.ts';

export type Polling = ReturnType<typeof openPolling>;
export type Policy = (settings: { lagPrice: number }) => PolicyFactory;

/** Opens the watcher, the chains of its upstreams and polls on demand. `start` begins to poll. */
export function openPolling(deps: {
  config: Config;
  ledger: Ledger;
  upstreams: Upstreams;
  engine: PollEngine;
  /** When to poll. Default: by the learned distribution of finality times. */
  policy?: Policy | undefined;
  listeners: readonly WatcherListener[];
  clock: Clock;
  random: () => number;
  log: Log;
  tuning: Tuning;
}) {
  const { config, ledger, upstreams, clock, random, log, tuning } = deps;
  const { policy = eventPacing } = deps;
  const lookup: CachedLookup = new CachedLookup({
    get: (id) => ledger.submissions.get(id),
    pollOnDemand: (upstream, id) => watcher.pollOnDemand(upstream, id),
    now: () => clock.now(),
  });
  const chains = openChains({
    ...{ upstreams: upstreams.named, clock, random, log, version: VERSION },
    genesis: {
      of: (upstream) => ledger.upstreams.get(upstream).genesisHash,
      keep: (upstream, hash) => ledger.upstreams.keepGenesisHash(upstream, hash),
    },
    submissions: ledger.submissions,
    record: (upstream, verdicts) => watcher.recordVerdicts(upstream, verdicts),
    poll: (upstream, id) => void watcher.pollOnDemand(upstream, id),
  });
  const watcher: Watcher = new Watcher({
    settings: watcherSettings(config, upstreams.named, policy, tuning.breaker),
    ledger,
    engine: chainEngine(deps.engine, chains.observe),
    clock,
    random,
    listeners: [
      logMonitor(log),
      {
        recorded({ observation, submission }) {
          if (observation) lookup.add(observation);
          if (submission.chain === 'confirmed') chains.confirm(submission.upstream);
        },
      },
      ...deps.listeners,
    ],
  });
  // Submissions whose upstream is no longer configured are kept, but not polled.
  for (const [upstream, submissions] of ledger.submissions.watchedCounts())
    if (!watcher.hasUpstream(upstream))
      log.warn({ upstream, submissions }, 'upstream.not_configured');
  return {
    watcher,
    lookup,
    chainOf: chains.statusOf,
    /** What the alert rules of upstreams depend on. */
    live: () => ({ unusedNodes: chains.unusedNodes(), pauses: watcher.upstreams() }),
    /** How long a poll on demand may wait: for the request budget, and for the upstream. */
    longestPollMs:
      ON_DEMAND_WAIT_MS + Math.max(...upstreams.named.map(([, upstream]) => leaseMsOf(upstream))),
    /** Returns why this server does not work; undefined: it writes its ledger and all loops run. */
    defect(): string | undefined {
      try {
        ledger.database.probe(clock.now());
      } catch {
        return 'the ledger is not writable';
      }
      const idle = watcher.notPolling();
      return idle.length > 0 ? `the poll loop of ${idle.join(', ')} does not run` : undefined;
    },
    health() {
      const { ledgerWritable, upstreams: all } = watcher.health();
      const withChains = all.map((one) => ({ ...one, chain: chains.statusOf(one.upstream) }));
      return { ledgerWritable, upstreams: withChains };
    },
    start(): void {
      watcher.start(tuning.testsKeys);
      chains.onHead((upstream, head) => watcher.observeHead(upstream, head));
      chains.start();
    },
    async stop(limitMs: number): Promise<void> {
      await watcher.stop(limitMs);
      await chains.close();
    },
  };
}
