import type { Clock } from '../domain/clock.ts';
import type { Counters } from '../http/metrics/counters.ts';
import type { Overview } from '../http/ports.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { RollingHour } from '../stats/rolling-hour.ts';
import type { WatcherListener } from '../watch/listeners.ts';
import type { PollEngine } from '../watch/ports.ts';
import type { Watcher } from '../watch/watcher.ts';
import type { Scaling } from './scaling.ts';

const HOUR_MS = 3_600_000;
/** Read back at a start, the newest first: 200 a second for an hour would be 720,000. */
const MOST_READ_BACK = 1_000_000;

/** What is counted as it happens, for /v1/overview and /metrics alike. */
export type LiveStats = {
  hour: RollingHour;
  listener: WatcherListener;
  /** The same hands, with their answers counted. */
  counting(engine: PollEngine): PollEngine;
};

/** Goes on with the last hour of the ledger; how late each finality was noticed then is not kept there. */
export function startLiveStats(deps: { ledger: Ledger; clock: Clock; counters: Counters }): LiveStats {
  const { ledger, clock, counters } = deps;
  const now = clock.now();
  const hour = new RollingHour(now);
  for (const { at, trackedAt, polls } of ledger.stats.finalizedSince(now - HOUR_MS, MOST_READ_BACK))
    hour.addFinalized({ at, timeToFinalityMs: at - trackedAt, lagMs: null, polls });
  // The first count is the one that reads them all.
  ledger.stats.onEnded(counters.submissionEnded);
  ledger.stats.onCommitted(counters.transactionCommitted);
  return {
    hour,
    listener: {
      finalized(finality) {
        const { at, trackedAt, after, polls } = finality;
        counters.finalized(finality);
        hour.addFinalized({ at, timeToFinalityMs: at - trackedAt, lagMs: Math.max(0, at - after), polls });
      },
    },
    counting: (engine) => ({
      poll: (batch, report) =>
        engine.poll(batch, (observation) => {
          hour.addPoll(observation.at);
          counters.polled(batch.upstream, observation);
          report(observation);
        }),
    }),
  };
}

const OLDEST_OPEN = 10;

/** Everything that is shown of what is going on; none of it takes long, however many submissions there are. */
export function overviewOf(deps: {
  ledger: Ledger;
  monitor: Watcher;
  tally: LiveStats;
  clock: Clock;
  scaling: Scaling | undefined;
}): Overview {
  const { ledger, monitor, tally, clock, scaling } = deps;
  const now = clock.now();
  return {
    submissions: ledger.stats.submissionsByStatus(),
    minutes: tally.hour.minutes(now),
    hour: tally.hour.hour(now),
    upstreams: monitor.pacing(),
    oldestOpen: ledger.stats.oldestOpen(OLDEST_OPEN),
    deliveries: ledger.stats.deliveries(),
    workers: scaling?.health().workers.length ?? null,
  };
}
