import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { iso } from '../../lib/timestamps.ts';
import type { WatcherListener } from '../../polling/listeners.ts';
import type { Detection } from '../../submissions/ports.ts';
import type { LedgerStats } from '../ledger-stats.ts';
import type { Counters } from './counters.ts';

const MINUTE_MS = 60_000;
const MINUTES = 60;
export const HOUR_MS = MINUTES * MINUTE_MS;
/** An hour, and the one before, for comparison. */
const KEPT = 2 * MINUTES;
/** The comparison for `fixedPollsEach`: a poll every five seconds until finality. */
const FIXED_INTERVAL_MS = 5_000;
/** Of the histograms, in ms. Durations outside count as the limit. */
const RANGE = { lowest: 1, highest: 8 * 86_400_000 };

/** A submission that was found final. */
type FinalizedSample = {
  at: number;
  timeToFinalityMs: number;
  detection: Pick<Detection, 'lagMs' | 'source'> | null;
  polls: number;
};

class Minute {
  readonly timeToFinality = durations();
  readonly lag = durations();
  /** Lags of `lag` that are known from the chain. */
  lagsByChain = 0;
  pollsOfFinalized = 0;
  fixedPolls = 0;
  polls = 0;
}

/**
 * Statistics of the last two hours by minute. The size is bounded, however many submissions there
 * are.
 */
export class RollingHour {
  /** By minutes since 1970. */
  readonly #minutes = new Map<number, Minute>();
  readonly #countsSince: number;

  /** `since`: when counting of polls begins. */
  constructor(since: number) {
    this.#countsSince = since;
  }

  addFinalized({ at, timeToFinalityMs, detection, polls }: FinalizedSample): void {
    const minute = this.#minuteOf(at);
    record(minute.timeToFinality, timeToFinalityMs);
    if (detection) record(minute.lag, detection.lagMs);
    if (detection?.source === 'chain') minute.lagsByChain += 1;
    minute.pollsOfFinalized += polls;
    minute.fixedPolls += Math.max(1, Math.ceil(timeToFinalityMs / FIXED_INTERVAL_MS));
  }

  addPoll(at: number): void {
    this.#minuteOf(at).polls += 1;
  }

  /**
   * Returns the last sixty minutes in the form of /v1/overview, the oldest first. The newest has
   * not ended.
   */
  minutes(now: number) {
    const newest = numberOf(now);
    return Array.from({ length: MINUTES }, (_, index) => {
      const number = newest - (MINUTES - 1) + index;
      const minute = this.#minutes.get(number);
      const isCounted = (number + 1) * MINUTE_MS > this.#countsSince;
      const timeToFinality = minute && spreadOf(minute.timeToFinality);
      const lag = minute && spreadOf(minute.lag);
      return {
        at: iso(number * MINUTE_MS),
        finalized: minute?.timeToFinality.count ?? 0,
        time_to_finality_p50_s: timeToFinality?.p50 ?? null,
        time_to_finality_p99_s: timeToFinality?.p99 ?? null,
        detection_lag_p50_s: lag?.p50 ?? null,
        detection_lag_p99_s: lag?.p99 ?? null,
        polls: isCounted ? (minute?.polls ?? 0) : null,
      };
    });
  }

  /** Returns the totals of the sixty minutes that end with the one of `now`. */
  hour(now: number) {
    const [timeToFinality, lag] = [durations(), durations()];
    let [polls, fixedPolls, lagsByChain] = [0, 0, 0];
    const newest = numberOf(now);
    for (const [number, minute] of this.#minutes) {
      if (number > newest || number <= newest - MINUTES) continue;
      timeToFinality.add(minute.timeToFinality);
      lag.add(minute.lag);
      lagsByChain += minute.lagsByChain;
      polls += minute.pollsOfFinalized;
      fixedPolls += minute.fixedPolls;
    }
    const finalized = timeToFinality.count;
    const lagSpread = spreadOf(lag);
    const each = (total: number) =>
      finalized === 0 ? null : Math.round((100 * total) / finalized) / 100;
    return {
      finalized,
      time_to_finality_s: spreadOf(timeToFinality),
      detection_lag_s: lagSpread && { count: lag.count, from_chain: lagsByChain, ...lagSpread },
      polls_per_submission: each(polls),
      fixed_5s_polls_per_submission: each(fixedPolls),
    };
  }

  #minuteOf(at: number): Minute {
    const number = numberOf(at);
    const known = this.#minutes.get(number);
    if (known) return known;
    const minute = new Minute();
    this.#minutes.set(number, minute);
    // Minutes that are over, or that a clock wrote that was ahead.
    for (const other of this.#minutes.keys())
      if (Math.abs(other - number) > KEPT) this.#minutes.delete(other);
    return minute;
  }
}

function numberOf(at: number): number {
  return Math.floor(at / MINUTE_MS);
}

function durations(): RecordableHistogram {
  return createHistogram({ ...RANGE, figures: 2 });
}

function record(histogram: RecordableHistogram, ms: number): void {
  histogram.record(Math.round(Math.min(Math.max(ms, RANGE.lowest), RANGE.highest)));
}

/** Seconds, exact to 1 %. */
function spreadOf(histogram: RecordableHistogram) {
  if (histogram.count === 0) return null;
  const at = (percentile: number) => Math.round(histogram.percentile(percentile)) / 1_000;
  return { mean: Math.round(histogram.mean) / 1_000, p50: at(50), p90: at(90), p99: at(99) };
}

/**
 * Maximum finalities read at the start, the newest first. 100 per second for two hours would be
 * 720,000.
 */
const MOST_READ_BACK = 1_000_000;

/**
 * Starts the statistics that are updated with each event, for /v1/overview and /metrics. Those of
 * the overview begin with the last two hours of the ledger.
 */
export function startLiveStats(deps: { stats: LedgerStats; now: number; counters: Counters }) {
  const { stats, now, counters } = deps;
  const hour = new RollingHour(now);
  for (const found of stats.finalizedSince(now - 2 * HOUR_MS, MOST_READ_BACK)) {
    const { at, trackedAt, pollableAt, polls, finalityAt, source } = found;
    const lagMs = at - Math.max(pollableAt, finalityAt ?? pollableAt);
    const detection = source && { lagMs, source };
    hour.addFinalized({ at, timeToFinalityMs: at - trackedAt, detection, polls });
  }
  // Registered first: the initial count reads all rows.
  stats.onEnded(counters.submissionEnded);
  stats.onCommitted(counters.transactionCommitted);
  const listener: WatcherListener = {
    polled(upstream, observation) {
      hour.addPoll(observation.at);
      counters.polled(upstream, observation);
    },
    finalized(finality) {
      const { at, trackedAt, detection, polls } = finality;
      counters.finalized(finality);
      hour.addFinalized({ at, timeToFinalityMs: at - trackedAt, detection, polls });
    },
  };
  return { hour, listener };
}
