import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { DurationHistogram } from '../lib/duration-histogram.ts';
import type { FinalitySource } from './submission.ts';

export const SUM_UNITS = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const;
export type SumUnit = keyof typeof SUM_UNITS;
const UNITS = Object.keys(SUM_UNITS) as SumUnit[];

/** Rows of a unit that are kept: an hour by minute, a week by hour, 90 days by day. */
const KEPT: Record<SumUnit, number> = { minute: 61, hour: 24 * 7 + 1, day: 91 };

/** A submission that was found final. `detection`: how late; null: not known. */
export type Finalization = {
  at: number;
  trackedAt: number;
  polls: number;
  detection: { lagMs: number; source: FinalitySource } | null;
};

/** What became final in a period. Durations are in ms. */
export class FinalitySum {
  finalized = 0;
  polls = 0;
  lagsByChain = 0;
  timeToFinality = new DurationHistogram();
  lag = new DurationHistogram();

  add({ at, trackedAt, polls, detection }: Finalization): void {
    this.finalized += 1;
    this.polls += polls;
    this.timeToFinality.add(at - trackedAt);
    if (detection) this.lag.add(detection.lagMs);
    if (detection?.source === 'chain') this.lagsByChain += 1;
  }

  merge(other: FinalitySum): void {
    this.finalized += other.finalized;
    this.polls += other.polls;
    this.lagsByChain += other.lagsByChain;
    this.timeToFinality.merge(other.timeToFinality);
    this.lag.merge(other.lag);
  }
}

type Row = {
  start: number;
  finalized: number;
  polls: number;
  lagsByChain: number;
  timeToFinality: string;
  lag: string;
};

/** What became final by minute, hour and day, for the overview. Throws LedgerError. */
export class FinalitySums {
  readonly #db: LedgerDatabase;

  constructor(database: LedgerDatabase) {
    this.#db = database;
  }

  /** Must be called in the transaction of the changes. Deletes the rows that are too old, too. */
  add(finalizations: readonly Finalization[]): void {
    for (const unit of UNITS)
      for (const [start, some] of Map.groupBy(finalizations, ({ at }) => startOf(unit, at))) {
        const sum = this.read(unit, { from: start, until: start + 1 }).get(start);
        const total = sum ?? new FinalitySum();
        for (const one of some) total.add(one);
        const { timeToFinality, lag, ...counts } = total;
        this.#db.run(INSERT, {
          ...{ unit, start, ...counts },
          ...{ timeToFinality: String(timeToFinality), lag: String(lag) },
        });
        const oldest = start - KEPT[unit] * SUM_UNITS[unit];
        if (!sum)
          this.#db.run`DELETE FROM finality_sums WHERE unit = ${unit} AND start < ${oldest}`;
      }
  }

  /** Returns the sums that begin in the range, by their start. Empty periods have none. */
  read(unit: SumUnit, range: { from: number; until: number }): Map<number, FinalitySum> {
    const rows = this.#db.rows<Row>(SELECT, { unit, ...range });
    return new Map(
      rows.map(({ start, timeToFinality, lag, ...counts }) => [
        start,
        Object.assign(new FinalitySum(), {
          ...counts,
          timeToFinality: DurationHistogram.parse(timeToFinality),
          lag: DurationHistogram.parse(lag),
        }),
      ]),
    );
  }
}

/** Returns the start of the period that contains a time. */
export function startOf(unit: SumUnit, at: number): number {
  return Math.floor(at / SUM_UNITS[unit]) * SUM_UNITS[unit];
}

const SELECT = `
  SELECT start, finalized, polls, lags_by_chain AS lagsByChain, time_to_finality AS timeToFinality, lag
  FROM finality_sums WHERE unit = @unit AND start >= @from AND start < @until ORDER BY start`;

const INSERT = `
  INSERT OR REPLACE INTO finality_sums (unit, start, finalized, polls, lags_by_chain, time_to_finality, lag)
  VALUES (@unit, @start, @finalized, @polls, @lagsByChain, @timeToFinality, @lag)`;
