import { statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { DurationHistogram } from '../lib/duration-histogram.ts';
import { nearestTime } from '../lib/json.ts';
import type { Detection, RecordedChange } from './store-results.ts';
import { Status } from './submission.ts';
import type { StatusCounts } from './submission-queries.ts';

/** `failing`: of the waiting ones, those with a failed attempt. */
type DeliveryCounts = {
  waiting: number;
  failing: number;
  dead: number;
  oldestWaitingAt: number | null;
};

export type LedgerCounts = {
  submissions: Record<Status, number>;
  oldestOpenAt: number | null;
  deliveries: DeliveryCounts;
};

/** Statistics that take a short time even of a large ledger. Throws LedgerError. */
export class LedgerStats {
  readonly #db: LedgerDatabase;
  readonly #counts: StatusCounts;

  constructor(database: LedgerDatabase, counts: StatusCounts) {
    this.#db = database;
    this.#counts = counts;
  }

  onCommitted(listener: (durationMs: number) => void): void {
    this.#db.onEnd((committed, durationMs) => {
      if (committed) listener(durationMs);
    });
  }

  /** Called after a commit, once for each submission that ended, with its final status. */
  onEnded(listener: (status: Status) => void): void {
    this.#counts.onEnded(listener);
  }

  bytes(): { database: number; wal: number } {
    return { database: sizeOf(this.#db.connection.name), wal: this.walBytes() };
  }

  walBytes(): number {
    return sizeOf(`${this.#db.connection.name}-wal`);
  }

  /** Returns the free space and the size of the file system; undefined if they cannot be read. */
  disk(): { freeBytes: number; sizeBytes: number } | undefined {
    try {
      const { bavail, blocks, bsize } = statfsSync(dirname(this.#db.connection.name));
      return { freeBytes: bavail * bsize, sizeBytes: blocks * bsize };
    } catch {
      return undefined;
    }
  }

  counts(): LedgerCounts {
    const { oldestWaitingAt: at, ...deliveries } = this.#db.row(COUNT_DELIVERIES) as DeliveryCounts;
    return {
      submissions: this.#counts.get(),
      oldestOpenAt: this.oldestOpenAt(),
      deliveries: {
        ...deliveries,
        oldestWaitingAt: typeof at === 'number' ? nearestTime(at) : null,
      },
    };
  }

  /** When the oldest open submission was tracked. */
  oldestOpenAt(): number | null {
    const first = (status: string) =>
      `SELECT * FROM (SELECT tracked_at AS at FROM submissions WHERE status = '${status}' ORDER BY id LIMIT 1)`;
    const rows = this.#db.rows<{ at: number }>(
      ['tracking', 'pending', 'failing'].map(first).join(' UNION ALL '),
    );
    return rows.length === 0 ? null : Math.min(...rows.map(({ at }) => nearestTime(at)));
  }
}

const COUNT_DELIVERIES = `
  SELECT
    (SELECT count(*) FROM deliveries WHERE state = 'waiting') AS waiting,
    (SELECT count(*) FROM deliveries INDEXED BY deliveries_failing
     WHERE state = 'waiting' AND attempts > 0) AS failing,
    (SELECT count(*) FROM deliveries WHERE state = 'dead') AS dead,
    (SELECT min(waiting_since) FROM deliveries WHERE state = 'waiting') AS oldestWaitingAt`;

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

export const SUM_UNITS = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const;
export type SumUnit = keyof typeof SUM_UNITS;
const UNITS = Object.keys(SUM_UNITS) as SumUnit[];

/** Rows of a unit that are kept: an hour by minute, a week by hour, 90 days by day. */
const KEPT: Record<SumUnit, number> = { minute: 61, hour: 24 * 7 + 1, day: 91 };

/** The first observation that found a submission final. Times are epoch milliseconds. */
export type Finalization = {
  upstream: string;
  at: number;
  trackedAt: number;
  polls: number;
  /** How late it was detected; null: not enough was known. */
  detection: Detection | null;
};

/** Returns the finalizations among recorded changes. */
export function finalizationsOf(recorded: readonly RecordedChange[]): Finalization[] {
  return recorded.flatMap(({ at, previousStatus, submission, detection }) => {
    const { status, upstream, trackedAt, polls } = submission;
    if (status !== Status.finalized || previousStatus === Status.finalized) return [];
    return [{ upstream, at, trackedAt, polls, detection }];
  });
}

/** Means of fewer submissions are null: one unusual submission would decide them. */
export const LEAST_FINALIZED = 20;

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

  /** Polls sent for the submissions until they became final, divided by their number. */
  get requestsPerSubmission(): number | null {
    if (this.finalized < LEAST_FINALIZED) return null;
    return Math.round((100 * this.polls) / this.finalized) / 100;
  }

  get meanLagS(): number | null {
    const meanMs = this.lag.count < LEAST_FINALIZED ? null : this.lag.mean;
    return meanMs && Number((meanMs / 1_000).toPrecision(3));
  }

  static of(sums: Iterable<FinalitySum>): FinalitySum {
    const total = new FinalitySum();
    for (const sum of sums) total.merge(sum);
    return total;
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
    for (const [upstream, ofOne] of Map.groupBy(finalizations, ({ upstream }) => upstream))
      for (const unit of UNITS)
        for (const [start, some] of Map.groupBy(ofOne, ({ at }) => startOf(unit, at))) {
          const sum = this.read(unit, { from: start, until: start + 1 }, upstream).get(start);
          const total = sum ?? new FinalitySum();
          for (const one of some) total.add(one);
          const { timeToFinality, lag, ...counts } = total;
          this.#db.run(INSERT, {
            ...{ unit, start, upstream, ...counts },
            ...{ timeToFinality: String(timeToFinality), lag: String(lag) },
          });
          const oldest = start - KEPT[unit] * SUM_UNITS[unit];
          if (!sum)
            this.#db.run`DELETE FROM finality_sums WHERE unit = ${unit} AND start < ${oldest}`;
        }
  }

  /**
   * Returns the sums that begin in the range, by their start; by default of all upstreams together.
   * Empty periods have none.
   */
  read(
    unit: SumUnit,
    range: { from: number; until: number },
    upstream: string | null = null,
  ): Map<number, FinalitySum> {
    const rows = this.#db.rows<Row>(SELECT, { unit, ...range, upstream });
    return new Map(
      [...Map.groupBy(rows, ({ start }) => start)].map(([start, some]) => [
        start,
        FinalitySum.of(some.map(toSum)),
      ]),
    );
  }

  /** Returns what became final at an upstream in this minute and the 59 before it. */
  lastHour(upstream: string, now: number): FinalitySum {
    const until = startOf('minute', now) + SUM_UNITS.minute;
    const range = { from: until - SUM_UNITS.hour, until };
    return FinalitySum.of(this.read('minute', range, upstream).values());
  }
}

function toSum({ timeToFinality, lag, ...counts }: Row): FinalitySum {
  return Object.assign(new FinalitySum(), {
    ...counts,
    timeToFinality: DurationHistogram.parse(timeToFinality),
    lag: DurationHistogram.parse(lag),
  });
}

/** Returns the start of the period that contains a time. */
export function startOf(unit: SumUnit, at: number): number {
  return Math.floor(at / SUM_UNITS[unit]) * SUM_UNITS[unit];
}

const SELECT = `
  SELECT start, finalized, polls, lags_by_chain AS lagsByChain, time_to_finality AS timeToFinality, lag
  FROM finality_sums
  WHERE unit = @unit AND start >= @from AND start < @until AND upstream = coalesce(@upstream, upstream)
  ORDER BY start`;

const INSERT = `
  INSERT OR REPLACE INTO finality_sums (unit, start, upstream, finalized, polls, lags_by_chain, time_to_finality, lag)
  VALUES (@unit, @start, @upstream, @finalized, @polls, @lagsByChain, @timeToFinality, @lag)`;
