import type { Clock } from '../../domain/clock.ts';
import type { Objective } from '../../domain/reports/objective.ts';
import type { Ledger } from '../ledger.ts';
import type { EndPosition, Pruned } from './pruning.ts';

const INTERVAL_MS = 60_000;
const PRUNE_REPORTS_MS = 3_600_000;
/** The pause between two transactions, for other work. */
const PAUSE_MS = 10;
/** Sizes of one transaction, chosen so that it takes two or three milliseconds. */
const SUBMISSIONS_PER_STEP = 20;
const DELIVERIES_PER_STEP = 100;
const EVENTS_PER_STEP = 50;
const COUNTED_PER_STEP = 10_000;
const PAGES_PER_STEP = 100;
const HISTORY_PER_STEP = 100;
const OBJECTIVES_PER_STEP = 500;
const REPORT_ROWS_PER_STEP = 50;
/** Ended submissions and events stay at least this long for clients that wait for them or read the live feed. */
const MIN_AGE_MS = 3_600_000;

/** How long ended records are kept, in milliseconds, and how many submissions; null: no limit. */
export type Retention = {
  deliveriesMs: number;
  submissionsMs: number | null;
  submissions: number | null;
  eventsMs: number | null;
};

/** What reports count. */
export type ReportSettings = {
  /** The key of `metadata` by whose values submissions are grouped; null: none. */
  metadataKey: string | null;
  /** By upstream. */
  objectives: ReadonlyMap<string, Objective>;
};

export type PrunedCounts = { submissions: number; events: number; deliveries: number };

type MaintenanceDeps = {
  ledger: Ledger;
  clock: Clock;
  retention: Retention;
  reports: ReportSettings;
  /** Called after a run that deleted anything. */
  onPruned: (counts: PrunedCounts) => void;
  onFailed: (error: unknown) => void;
};

/**
 * Once a minute, counts the changes of the last minute for the reports, deletes what exceeds the retention, returns free space to the file system and shortens a large log. Works in
 * steps of a few milliseconds, each in its own transaction; an interrupted run is completed by the next one.
 */
export class Maintenance {
  readonly #deps: MaintenanceDeps;
  #cancel: (() => void) | undefined;
  #pruneReportsAt = Number.NEGATIVE_INFINITY;
  #pruned: PrunedCounts = { submissions: 0, events: 0, deliveries: 0 };

  constructor(deps: MaintenanceDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#cancel = this.#deps.clock.after(INTERVAL_MS, () => this.#continue(this.#run()));
  }

  stop(): void {
    this.#cancel?.();
  }

  #continue(run: Iterator<void>): void {
    if (run.next().done) this.start();
    else this.#cancel = this.#deps.clock.after(PAUSE_MS, () => this.#continue(run));
  }

  /** A task that fails, on a full disk for example, does not prevent the others. */
  *#run(): Generator<void> {
    const { ledger, clock, onPruned, onFailed } = this.#deps;
    const checkpoint = () => ledger.space.checkpoint(clock.now());
    this.#pruned = { submissions: 0, events: 0, deliveries: 0 };
    const tasks = [
      this.#reports(),
      this.#objectives(),
      this.#deliveries(),
      this.#oldSubmissions(),
      this.#excessSubmissions(),
      this.#events(),
      this.#shrink(),
    ];
    for (const task of tasks) {
      try {
        // While a reader prevents the log from being truncated, deleting would only fill the disk.
        for (let log = checkpoint(); log !== 'held'; log = checkpoint()) {
          if (log === 'copied' && task.next().done) break;
          yield;
        }
        checkpoint();
      } catch (error) {
        onFailed(error);
      }
    }
    if (Object.values(this.#pruned).some((count) => count > 0)) onPruned(this.#pruned);
  }

  *#reports(): Generator<void> {
    const { ledger, clock, reports } = this.#deps;
    const { metadataKey } = reports;
    while (ledger.reports.count({ metadataKey, now: clock.now(), limit: HISTORY_PER_STEP })) yield;
    if (clock.now() < this.#pruneReportsAt) return;
    this.#pruneReportsAt = clock.now() + PRUNE_REPORTS_MS;
    while (ledger.reports.prune(clock.now(), REPORT_ROWS_PER_STEP)) yield;
    for (const upstream of reports.objectives.keys())
      while (ledger.objectives.prune(upstream, clock.now(), REPORT_ROWS_PER_STEP)) yield;
  }

  *#objectives(): Generator<void> {
    const { ledger, clock, reports } = this.#deps;
    for (const [upstream, objective] of reports.objectives)
      while (ledger.objectives.count({ upstream, objective, now: clock.now(), limit: OBJECTIVES_PER_STEP })) yield;
  }

  *#deliveries(): Generator<void> {
    const { ledger, clock, retention } = this.#deps;
    for (let deleted = DELIVERIES_PER_STEP; deleted === DELIVERIES_PER_STEP; ) {
      yield;
      deleted = ledger.deliveries.prune(clock.now() - retention.deliveriesMs, DELIVERIES_PER_STEP);
      this.#pruned.deliveries += deleted;
    }
  }

  *#oldSubmissions(): Generator<void> {
    const { clock, retention } = this.#deps;
    if (retention.submissionsMs !== null)
      yield* this.#endedBefore({ endedAt: clock.now() - retention.submissionsMs, id: 0 });
  }

  /** Counts from the newest submission back to the oldest one to keep, then deletes those that ended before it. */
  *#excessSubmissions(): Generator<void> {
    const { ledger, retention } = this.#deps;
    if (retention.submissions === null) return;
    let oldest: EndPosition | undefined = { endedAt: Number.MAX_SAFE_INTEGER, id: 0 };
    for (let left = retention.submissions; left > 0 && oldest; left -= COUNTED_PER_STEP) {
      yield;
      oldest = ledger.pruning.endedBefore(oldest, Math.min(left, COUNTED_PER_STEP));
    }
    if (oldest) yield* this.#endedBefore(oldest);
  }

  *#endedBefore(position: EndPosition): Generator<void> {
    const { ledger, clock, reports } = this.#deps;
    // If those that ended in time were deleted before they are judged, the others alone would spend the error budget.
    const judgedAfterMs = [...reports.objectives.values()].map(({ withinMs }) => withinMs + INTERVAL_MS);
    const minAgeMs = Math.max(MIN_AGE_MS, ...judgedAfterMs);
    const minAge = { endedAt: Math.min(position.endedAt, clock.now() - minAgeMs), id: 0 };
    const before = position.endedAt < minAge.endedAt ? position : minAge;
    const first = { endedAt: Number.MIN_SAFE_INTEGER, id: 0 };
    yield* this.#prune('submissions', first, (after) =>
      // What the reports have not counted yet stays, for example because counting failed.
      ledger.pruning.submissions({
        after,
        before,
        limit: SUBMISSIONS_PER_STEP,
        countedThrough: ledger.reports.countedThrough(),
      }),
    );
  }

  *#events(): Generator<void> {
    const { ledger, clock, retention } = this.#deps;
    if (retention.eventsMs === null) return;
    const now = clock.now();
    const before = now - Math.max(retention.eventsMs, MIN_AGE_MS);
    yield* this.#prune('events', 0, (after) => ledger.pruning.events({ after, before, now, limit: EVENTS_PER_STEP }));
  }

  /** Deletes in steps, each of which continues after the position of the one before. */
  *#prune<Position>(
    kind: 'submissions' | 'events',
    first: Position,
    step: (after: Position) => Pruned<Position>,
  ): Generator<void> {
    for (let after: Position | null = first; after !== null; ) {
      yield;
      const { deleted, next } = step(after);
      this.#pruned[kind] += deleted;
      after = next;
    }
  }

  *#shrink(): Generator<void> {
    do yield;
    while (this.#deps.ledger.space.shrink(PAGES_PER_STEP));
  }
}
