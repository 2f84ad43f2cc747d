import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { FINAL_STATUSES } from '../submissions/submission.ts';
import { DurationHistogram } from './duration-histogram.ts';
import { addRollUp, emptyRollUp, type ReportGroup, type RollUp } from './roll-up.ts';

export const REPORT_UNITS = { hour: 3_600_000, day: 86_400_000 } as const;
export type ReportUnit = keyof typeof REPORT_UNITS;

/** How long rows are kept. */
const KEPT_MS: Record<ReportUnit, number> = {
  hour: 8 * REPORT_UNITS.day,
  day: 400 * REPORT_UNITS.day,
};
/** Values of one dimension, upstream and day that have a row of their own. The others share one. */
const MAX_GROUPS_PER_DAY = 100;

export type ReportKey = {
  unit: ReportUnit;
  dimension: string;
  start: number;
  upstream: string;
  group: ReportGroup;
};
export type ReportRow = { key: ReportKey; sums: RollUp };

type StoredRow = RollUp['ended'] & {
  unit: ReportUnit;
  dimension: string;
  start: number;
  upstream: string;
  value: string;
  corrected: number;
  requests: number;
  timeToFinality: string;
  lag: string;
  fees: string;
  dataBilled: string;
  unbilled: number;
};

/**
 * Stores the sums of reports. Throws LedgerError.
 */
export class ReportRows {
  readonly #db: LedgerDatabase;

  constructor(database: LedgerDatabase) {
    this.#db = database;
  }

  /**
   * Adds to one row, or to the row of the other values if the day has too many. Must be called
   * inside a transaction.
   */
  add(key: ReportKey, sums: RollUp): void {
    const known = this.#find(key);
    const isNew = !known && key.group.kind === 'value' && key.dimension !== 'upstream';
    if (isNew && this.#groups(key) >= MAX_GROUPS_PER_DAY) {
      this.add({ ...key, group: { kind: 'other' } }, sums);
      return;
    }
    const total = known ?? emptyRollUp();
    addRollUp(total, sums);
    this.#db.run(INSERT, toStored(key, total));
  }

  /** Yields rows of one dimension with `from <= start < until`, in the order of their starts. */
  *read(query: {
    unit: ReportUnit;
    dimension: string;
    from: number;
    until: number;
    /** Undefined: all. */
    upstream: string | undefined;
  }): Generator<ReportRow, void> {
    const parameters = { ...query, upstream: query.upstream ?? null };
    for (const row of this.#db.rows<StoredRow>(SELECT, parameters)) {
      const { unit, dimension, start, upstream, value } = row;
      yield { key: { unit, dimension, start, upstream, group: toGroup(value) }, sums: toSums(row) };
    }
  }

  /** Deletes up to `limit` rows that are no longer kept. Returns whether there may be more. */
  prune(now: number, limit: number): boolean {
    return this.#db.unsyncedTransaction(() => {
      for (const unit of Object.keys(KEPT_MS) as ReportUnit[])
        for (const dimension of this.#dimensions(unit)) {
          const before = now - KEPT_MS[unit];
          const { changes } = this.#db.run(DELETE_OLD, { unit, dimension, before, limit });
          if (changes > 0) return true;
        }
      return false;
    });
  }

  /** Searches the primary key once per dimension; DISTINCT would read the whole table. */
  *#dimensions(unit: ReportUnit): Generator<string, void> {
    for (let after = ''; ; ) {
      const next = this.#db.value<string | null>`
        SELECT min(dimension) FROM report_rows WHERE unit = ${unit} AND dimension > ${after}`;
      if (next === null || next === undefined) return;
      yield next;
      after = next;
    }
  }

  #find(key: ReportKey): RollUp | undefined {
    const row = this.#db.row<StoredRow>(FIND, { ...key, group: null, value: fromGroup(key.group) });
    return row && toSums(row);
  }

  #groups({ unit, dimension, start, upstream }: ReportKey): number {
    return Number(
      this.#db.value`
        SELECT count(*) FROM report_rows
        WHERE unit = ${unit} AND dimension = ${dimension} AND start = ${start} AND upstream = ${upstream} AND value >= '='`,
    );
  }
}

const METADATA = 'metadata.';

/** Rows of another key that was configured earlier are kept beside those of this one. */
export function metadataDimension(key: string): string {
  return `${METADATA}${key}`;
}

/** Other texts sort before "=", with which values begin. */
function fromGroup(group: ReportGroup): string {
  return group.kind === 'value' ? `=${group.value}` : group.kind === 'none' ? '' : '*';
}

function toGroup(text: string): ReportGroup {
  if (text === '') return { kind: 'none' };
  return text === '*' ? { kind: 'other' } : { kind: 'value', value: text.slice(1) };
}

function toStored(
  key: ReportKey,
  { ended, timeToFinality, lag, fees, dataBilled, ...sums }: RollUp,
): StoredRow {
  const { group, ...rest } = key;
  const texts = { timeToFinality: String(timeToFinality), lag: String(lag), fees: String(fees) };
  return {
    ...rest,
    value: fromGroup(group),
    ...ended,
    ...sums,
    ...texts,
    dataBilled: String(dataBilled),
  };
}

function toSums(row: StoredRow): RollUp {
  return {
    ended: Object.fromEntries(
      FINAL_STATUSES.map((status) => [status, row[status]]),
    ) as RollUp['ended'],
    corrected: row.corrected,
    requests: row.requests,
    timeToFinality: DurationHistogram.parse(row.timeToFinality),
    lag: DurationHistogram.parse(row.lag),
    fees: toAmount(row.fees),
    dataBilled: toAmount(row.dataBilled),
    unbilled: row.unbilled,
  };
}

/** A damaged amount counts as 0. */
function toAmount(text: string): bigint {
  return /^-?\d+$/.test(text) ? BigInt(text) : 0n;
}

const COLUMNS = `unit, dimension, start, upstream, value, ${FINAL_STATUSES.join(', ')}, corrected, requests,
  time_to_finality AS timeToFinality, lag, fees, data_billed AS dataBilled, unbilled`;

const FIND = `
  SELECT ${COLUMNS} FROM report_rows
  WHERE unit = @unit AND dimension = @dimension AND start = @start AND upstream = @upstream AND value = @value`;

const SELECT = `
  SELECT ${COLUMNS} FROM report_rows
  WHERE unit = @unit AND dimension = @dimension AND start >= @from AND start < @until
    AND (@upstream IS NULL OR upstream = @upstream)
  ORDER BY start, upstream, value`;

const INSERT = `
  INSERT OR REPLACE INTO report_rows (unit, dimension, start, upstream, value, ${FINAL_STATUSES.join(', ')}, corrected, requests,
                                      time_to_finality, lag, fees, data_billed, unbilled)
  VALUES (@unit, @dimension, @start, @upstream, @value, ${FINAL_STATUSES.map((status) => `@${status}`).join(', ')},
          @corrected, @requests, @timeToFinality, @lag, @fees, @dataBilled, @unbilled)`;

const DELETE_OLD = `
  DELETE FROM report_rows WHERE unit = @unit AND dimension = @dimension AND (start, upstream, value) IN (
    SELECT start, upstream, value FROM report_rows
    WHERE unit = @unit AND dimension = @dimension AND start < @before ORDER BY start LIMIT @limit)`;
