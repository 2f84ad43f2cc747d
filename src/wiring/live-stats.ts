import type { Observation } from '../domain/classify.ts';
import type { Clock } from '../domain/clock.ts';
import type { Counters } from '../http/metrics/counters.ts';
import { RollingHour } from '../http/metrics/rolling-hour.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Finality } from '../watch/finality.ts';

const HOUR_MS = 3_600_000;
/** Maximum finalities read at the start, the newest first. 200 per second for an hour would be 720,000. */
const MOST_READ_BACK = 1_000_000;

/**
 * Starts the statistics that are updated with each event, for /v1/overview and /metrics. They begin with the last hour of the ledger, which does not contain the detection lag of each finality.
 */
export function startLiveStats(deps: { ledger: Ledger; clock: Clock; counters: Counters }) {
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
        hour.addFinalized({ at, timeToFinalityMs: at - trackedAt, lagMs: Math.max(0, at - after), polls });
      },
    },
  };
}
