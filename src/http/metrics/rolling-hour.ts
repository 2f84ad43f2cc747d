import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';

const MINUTE_MS = 60_000;
const MINUTES = 60;
/** The comparison for `fixedPollsEach`: a poll every five seconds until finality. */
const FIXED_INTERVAL_MS = 5_000;
/** Of the histograms, in ms. Durations outside count as the limit. */
const RANGE = { lowest: 1, highest: 8 * 86_400_000 };

/** A submission that was found final. `lagMs`: upper bound of the detection lag; null: unknown. */
type FinalizedSample = { at: number; timeToFinalityMs: number; lagMs: number | null; polls: number };

/** Milliseconds, exact to 1 %. */
export type DurationSummary = { meanMs: number; p50Ms: number; p90Ms: number; p99Ms: number };

/** One minute. Summaries are null if no submission was found final. */
export type MinuteStats = {
  /** Start of the minute, epoch milliseconds. */
  at: number;
  finalized: number;
  timeToFinality: DurationSummary | null;
  detectionLag: DurationSummary | null;
  /** Number of observations; null: the minute was before counting began. */
  polls: number | null;
};

export type HourStats = {
  finalized: number;
  timeToFinality: DurationSummary | null;
  detectionLag: DurationSummary | null;
  /** Requests per finalized submission, and what a poll every 5 s would have needed; null: there was none. */
  pollsEach: number | null;
  fixedPollsEach: number | null;
};

class Minute {
  readonly timeToFinality = durations();
  readonly lag = durations();
  pollsOfFinalized = 0;
  fixedPolls = 0;
  polls = 0;
}

/** Statistics of the last hour by minute. The size is bounded, however many submissions there are. */
export class RollingHour {
  /** At most sixty, by minutes since 1970. */
  readonly #minutes = new Map<number, Minute>();
  readonly #countsSince: number;

  /** `since`: when counting of polls begins. */
  constructor(since: number) {
    this.#countsSince = since;
  }

  addFinalized({ at, timeToFinalityMs, lagMs, polls }: FinalizedSample): void {
    const minute = this.#minuteOf(at);
    record(minute.timeToFinality, timeToFinalityMs);
    if (lagMs !== null) record(minute.lag, lagMs);
    minute.pollsOfFinalized += polls;
    minute.fixedPolls += Math.max(1, Math.ceil(timeToFinalityMs / FIXED_INTERVAL_MS));
  }

  addPoll(at: number): void {
    this.#minuteOf(at).polls += 1;
  }

  /** Returns the last sixty minutes, the oldest first. The newest has not ended. */
  minutes(now: number): MinuteStats[] {
    const newest = numberOf(now);
    return Array.from({ length: MINUTES }, (_, index) => {
      const number = newest - (MINUTES - 1) + index;
      const minute = this.#minutes.get(number);
      const isCounted = (number + 1) * MINUTE_MS > this.#countsSince;
      return {
        at: number * MINUTE_MS,
        finalized: minute?.timeToFinality.count ?? 0,
        timeToFinality: minute ? summarize(minute.timeToFinality) : null,
        detectionLag: minute ? summarize(minute.lag) : null,
        polls: isCounted ? (minute?.polls ?? 0) : null,
      };
    });
  }

  /** Returns the totals of the same sixty minutes. */
  hour(now: number): HourStats {
    const [timeToFinality, lag] = [durations(), durations()];
    let [polls, fixedPolls] = [0, 0];
    const newest = numberOf(now);
    for (const [number, minute] of this.#minutes) {
      if (number > newest || number <= newest - MINUTES) continue;
      timeToFinality.add(minute.timeToFinality);
      lag.add(minute.lag);
      polls += minute.pollsOfFinalized;
      fixedPolls += minute.fixedPolls;
    }
    const finalized = timeToFinality.count;
    return {
      finalized,
      timeToFinality: summarize(timeToFinality),
      detectionLag: summarize(lag),
      pollsEach: finalized === 0 ? null : polls / finalized,
      fixedPollsEach: finalized === 0 ? null : fixedPolls / finalized,
    };
  }

  #minuteOf(at: number): Minute {
    const number = numberOf(at);
    const known = this.#minutes.get(number);
    if (known) return known;
    const minute = new Minute();
    this.#minutes.set(number, minute);
    if (this.#minutes.size > MINUTES) this.#minutes.delete(Math.min(...this.#minutes.keys()));
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

function summarize(histogram: RecordableHistogram): DurationSummary | null {
  if (histogram.count === 0) return null;
  const [p50Ms, p90Ms, p99Ms] = [histogram.percentile(50), histogram.percentile(90), histogram.percentile(99)];
  return { meanMs: histogram.mean, p50Ms, p90Ms, p99Ms };
}
