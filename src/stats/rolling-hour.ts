import { DurationHistogram } from './duration-histogram.ts';

const MINUTE_MS = 60_000;
const MINUTES = 60;
/** What a client of its own would do: ask every five seconds until it is final. */
const FIXED_INTERVAL_MS = 5_000;

/** What was found final. `lagMs` null: how long it took at most until it was noticed is not known. */
export type FinalizedSample = { at: number; timeToFinalityMs: number; lagMs: number | null; polls: number };

/** Milliseconds; p50 and so on are exact to 4 %. */
export type DurationSummary = { meanMs: number; p50Ms: number; p90Ms: number; p99Ms: number };

/** One minute. Spreads are null where nothing was found final. */
export type MinuteStats = {
  /** When it begins, epoch milliseconds. */
  at: number;
  finalized: number;
  timeToFinality: DurationSummary | null;
  detectionLag: DurationSummary | null;
  /** Answers of the upstreams; null: nobody counted then. */
  polls: number | null;
};

export type HourStats = {
  finalized: number;
  timeToFinality: DurationSummary | null;
  detectionLag: DurationSummary | null;
  /** Requests made for each that was found final; and what asking every 5 s would have made. Null: there was none. */
  pollsEach: number | null;
  fixedPollsEach: number | null;
};

class Minute {
  /** Minutes since 1970; what it holds is of that one. */
  number = Number.NEGATIVE_INFINITY;
  readonly timeToFinality = new DurationHistogram();
  readonly lag = new DurationHistogram();
  pollsOfFinalized = 0;
  fixedPolls = 0;
  polls = 0;

  begin(number: number): void {
    this.number = number;
    this.timeToFinality.clear();
    this.lag.clear();
    this.pollsOfFinalized = 0;
    this.fixedPolls = 0;
    this.polls = 0;
  }
}

/** What happened in the last hour, minute by minute: of a fixed size, however much it was. */
export class RollingHour {
  readonly #minutes = Array.from({ length: MINUTES }, () => new Minute());
  readonly #countsSince: number;

  /** `since`: polls are counted from then on. */
  constructor(since: number) {
    this.#countsSince = since;
  }

  addFinalized({ at, timeToFinalityMs, lagMs, polls }: FinalizedSample): void {
    const minute = this.#minuteOf(at);
    if (!minute) return;
    minute.timeToFinality.add(timeToFinalityMs);
    if (lagMs !== null) minute.lag.add(lagMs);
    minute.pollsOfFinalized += polls;
    minute.fixedPolls += Math.max(1, Math.ceil(timeToFinalityMs / FIXED_INTERVAL_MS));
  }

  addPoll(at: number): void {
    const minute = this.#minuteOf(at);
    if (minute) minute.polls += 1;
  }

  /** The last sixty, the oldest first; the newest is not over. */
  minutes(now: number): MinuteStats[] {
    const newest = numberOf(now);
    return Array.from({ length: MINUTES }, (_, index) => {
      const number = newest - (MINUTES - 1) + index;
      const minute = this.#known(number);
      const isCounted = (number + 1) * MINUTE_MS > this.#countsSince;
      return {
        at: number * MINUTE_MS,
        finalized: minute?.timeToFinality.count ?? 0,
        timeToFinality: minute ? spreadOf(minute.timeToFinality) : null,
        detectionLag: minute ? spreadOf(minute.lag) : null,
        polls: isCounted ? (minute?.polls ?? 0) : null,
      };
    });
  }

  /** Of the same sixty minutes, all together. */
  hour(now: number): HourStats {
    const [timeToFinality, lag] = [new DurationHistogram(), new DurationHistogram()];
    let [polls, fixedPolls] = [0, 0];
    const newest = numberOf(now);
    for (const minute of this.#minutes) {
      if (minute.number > newest || minute.number <= newest - MINUTES) continue;
      timeToFinality.addAll(minute.timeToFinality);
      lag.addAll(minute.lag);
      polls += minute.pollsOfFinalized;
      fixedPolls += minute.fixedPolls;
    }
    const finalized = timeToFinality.count;
    return {
      finalized,
      timeToFinality: spreadOf(timeToFinality),
      detectionLag: spreadOf(lag),
      pollsEach: finalized === 0 ? null : polls / finalized,
      fixedPollsEach: finalized === 0 ? null : fixedPolls / finalized,
    };
  }

  #known(number: number): Minute | undefined {
    const minute = this.#minutes[placeOf(number)];
    return minute?.number === number ? minute : undefined;
  }

  /** Undefined: its place is taken by a newer one. */
  #minuteOf(at: number): Minute | undefined {
    const number = numberOf(at);
    const minute = this.#minutes[placeOf(number)];
    if (!minute || minute.number > number) return undefined;
    if (minute.number < number) minute.begin(number);
    return minute;
  }
}

function numberOf(at: number): number {
  return Math.floor(at / MINUTE_MS);
}

function placeOf(number: number): number {
  return ((number % MINUTES) + MINUTES) % MINUTES;
}

function spreadOf(histogram: DurationHistogram): DurationSummary | null {
  const [meanMs, p50Ms] = [histogram.meanMs(), histogram.quantileMs(0.5)];
  const [p90Ms, p99Ms] = [histogram.quantileMs(0.9), histogram.quantileMs(0.99)];
  if (meanMs === null || p50Ms === null || p90Ms === null || p99Ms === null) return null;
  return { meanMs, p50Ms, p90Ms, p99Ms };
}
