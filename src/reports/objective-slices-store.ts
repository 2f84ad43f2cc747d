import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import {
  BUDGET_MS,
  BURN_WINDOW_NAMES,
  BURN_WINDOWS,
  type BurnWindow,
  type Objective,
  type ObjectiveCounts,
  type ObjectiveStatus,
} from '../submissions/objective.ts';
import { Status } from '../submissions/submission.ts';

const SLICE_MS = 5 * 60_000;
const KEPT_MS = 400 * 86_400_000;
/**
 * A submission that begins later than this was tracked while the clock was ahead. It is not
 * counted, and does not delay the others.
 */
const MAX_AHEAD_MS = 86_400_000;

type Counted = {
  id: number;
  upstream: string;
  status: Status;
  notFoundMs: number | null;
  finalizedAt: number | null;
  /**
   * When dawatch received the request to track it; later than `tracked_at` if the client set that.
   */
  startAt: number;
};

/**
 * Counts for each upstream with an objective which submissions were known to be final in time. A
 * submission is counted once, when the time of the objective has passed since it was tracked,
 * whether it has ended or not: an outage is visible while it lasts. Throws LedgerError.
 */
export class ObjectiveSlices {
  readonly #db: LedgerDatabase;

  constructor(database: LedgerDatabase) {
    this.#db = database;
  }

  /** Examines the next `limit` submissions. Returns whether more can be counted now. */
  count(query: { upstream: string; objective: Objective; now: number; limit: number }): boolean {
    const { upstream, objective, now, limit } = query;
    const after = this.#db
      .value<number>`SELECT objective_through FROM upstreams WHERE name = ${upstream}`;
    // Reading is cheaper than a transaction, and usually little is new.
    const rows = after === undefined ? [] : this.#db.rows<Counted>(NEXT, { after, limit });
    if (rows.length === 0) return false;
    return this.#db.unsyncedTransaction(() => {
      const isOpen = (row: Counted) =>
        limitOf(row, objective) > now && row.startAt <= now + MAX_AHEAD_MS;
      const firstOpen = rows.findIndex((row) => row.upstream === upstream && isOpen(row));
      const counted = firstOpen < 0 ? rows : rows.slice(0, firstOpen);
      const slices = new Map<number, ObjectiveCounts>();
      for (const row of counted) {
        const isCounted = row.upstream === upstream && row.startAt <= now + MAX_AHEAD_MS;
        const isGood = isCounted ? inTime(row, objective) : undefined;
        if (isGood === undefined) continue;
        const start = Math.floor(limitOf(row, objective) / SLICE_MS) * SLICE_MS;
        const slice = slices.get(start) ?? { good: 0, bad: 0 };
        slices.set(start, slice);
        slice[isGood ? 'good' : 'bad'] += 1;
      }
      for (const [start, { good, bad }] of slices)
        this.#db.run`
          INSERT INTO objective_slices (upstream, start, good, bad) VALUES (${upstream}, ${start}, ${good}, ${bad})
          ON CONFLICT DO UPDATE SET good = good + excluded.good, bad = bad + excluded.bad`;
      const last = counted.at(-1);
      if (last)
        this.#db.run`UPDATE upstreams SET objective_through = ${last.id} WHERE name = ${upstream}`;
      return counted.length === limit;
    });
  }

  /**
   * Returns how the upstreams meet their objectives. Windows contain the slices that overlap with
   * them.
   */
  status(objectives: ReadonlyMap<string, Objective>, now: number): ObjectiveStatus[] {
    return [...objectives].map(([upstream, objective]) => {
      const since = (ms: number) =>
        this.sum({ upstream, from: now - ms, until: Number.MAX_SAFE_INTEGER });
      const windows = Object.fromEntries(
        BURN_WINDOW_NAMES.map((name) => [name, since(BURN_WINDOWS[name])]),
      );
      return {
        upstream,
        objective,
        budget: since(BUDGET_MS),
        windows: windows as Record<BurnWindow, ObjectiveCounts>,
      };
    });
  }

  /** Returns the counts of one upstream in the slices that overlap with a period. */
  sum({
    upstream,
    from,
    until,
  }: {
    upstream: string;
    from: number;
    until: number;
  }): ObjectiveCounts {
    return this.#db.row<ObjectiveCounts>`
      SELECT coalesce(sum(good), 0) AS good, coalesce(sum(bad), 0) AS bad FROM objective_slices
      WHERE upstream = ${upstream} AND start > ${from - SLICE_MS} AND start < ${until}` as ObjectiveCounts;
  }

  /**
   * Returns the counts of one upstream in periods of `unitMs` that begin at `start`, without those
   * that are empty.
   */
  byPeriod(query: { upstream: string; from: number; until: number; unitMs: number }) {
    return this.#db.rows<ObjectiveCounts & { start: number }>(
      `SELECT start - start % @unitMs AS start, sum(good) AS good, sum(bad) AS bad FROM objective_slices
       WHERE upstream = @upstream AND start >= @from AND start < @until GROUP BY 1`,
      query,
    );
  }

  /**
   * Deletes up to `limit` slices of an upstream that are no longer kept. Returns whether there may
   * be more.
   */
  prune(upstream: string, now: number, limit: number): boolean {
    return this.#db.unsyncedTransaction(() => {
      const { changes } = this.#db.run`
        DELETE FROM objective_slices WHERE upstream = ${upstream} AND start IN (
          SELECT start FROM objective_slices WHERE upstream = ${upstream} AND start < ${now - KEPT_MS} LIMIT ${limit})`;
      return changes === limit;
    });
  }
}

function limitOf({ startAt }: Counted, { withinMs }: Objective): number {
  return startAt + withinMs;
}

/**
 * Returns whether a submission was known in time; undefined if it does not count: its id is invalid
 * or not known to the upstream, or a client cancelled it.
 */
function inTime(row: Counted, objective: Objective): boolean | undefined {
  const { status, finalizedAt, notFoundMs } = row;
  if (finalizedAt !== null) return finalizedAt <= limitOf(row, objective);
  if (status === Status.cancelled || status === Status.rejected || status === Status.unknown)
    return undefined;
  return status === Status.tracking && notFoundMs !== null ? undefined : false;
}

const NEXT = `
  SELECT s.id, s.upstream, s.status, s.not_found_ms AS notFoundMs, s.finalized_at AS finalizedAt,
         max(s.tracked_at, coalesce(h.at, s.tracked_at)) AS startAt
  FROM submissions s LEFT JOIN history h ON h.submission = s.id AND h.version = 1
  WHERE s.id > @after ORDER BY s.id LIMIT @limit + 0`;
