import type { Clock } from '../../domain/clock.ts';
import type { Objective } from '../../domain/reports/objective.ts';
import type { Ledger } from '../ledger.ts';
import type { EndPosition } from './ended.ts';
import type { Pruned } from './pruning.ts';
import { StepSize } from './step-size.ts';

const INTERVAL_MS = 60_000;
const PRUNE_REPORTS_MS = 3_600_000;
/** The pause between two transactions, for other work. */
const PAUSE_MS = 10;
/** The largest sizes of one transaction, chosen so that it takes two or three milliseconds while its pages are in memory. */
const SUBMISSIONS_PER_STEP = 20;
const DELIVERIES_PER_STEP = 100;
const EVENTS_PER_STEP = 50;
const COUNTED_PER_STEP = 10_000;
const PAGES_PER_STEP = 100;
const HISTORY_PER_STEP = 100;
const OBJECTIVES_PER_STEP = 500;
const REPORT_ROWS_PER_STEP = 50;
/** How long pruning waits for the reads of another thread. After that, the event loop reads from the disk itself until one ends: a busy disk must not stop the pruning. */
const MAX_READ_MS = 10_000;
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

type PrunedKind = 'submissions' | 'events';
type PruningStep<Position> = (after: Position, limit: number) => Pruned<Position>;

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
 * steps of a few milliseconds, each in its own transaction and smaller while the disk is read; an interrupted run is completed by the next one.
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
    for (const [index, task] of tasks.entries()) {
      if (index > 0) yield;
      try {
        // While a reader prevents the log from being truncated, deleting would only fill the disk.
        for (let log = checkpoint(); log !== 'held'; log = checkpoint()) {
          if (log === 'copied' && task.next().done) break;
          yield;
        }
      } catch (error) {
        onFailed(error);
      }
    }
    if (Object.values(this.#pruned).some((count) => count > 0)) onPruned(this.#pruned);
  }

  *#reports(): Generator<void> {
    const { ledger, clock, reports } = this.#deps;
    const { metadataKey } = reports;
    yield* inSteps(HISTORY_PER_STEP, (limit) => ledger.reports.count({ metadataKey, now: clock.now(), limit }));
    if (clock.now() < this.#pruneReportsAt) return;
    this.#pruneReportsAt = clock.now() + PRUNE_REPORTS_MS;
    yield* inSteps(REPORT_ROWS_PER_STEP, (limit) => ledger.reports.prune(clock.now(), limit));
    for (const upstream of reports.objectives.keys())
      yield* inSteps(REPORT_ROWS_PER_STEP, (limit) => ledger.objectives.prune(upstream, clock.now(), limit));
  }

  *#objectives(): Generator<void> {
    const { ledger, clock, reports } = this.#deps;
    for (const [upstream, objective] of reports.objectives)
      yield* inSteps(OBJECTIVES_PER_STEP, (limit) =>
        ledger.objectives.count({ upstream, objective, now: clock.now(), limit }),
      );
  }

  *#deliveries(): Generator<void> {
    const { ledger, clock, retention } = this.#deps;
    yield* inSteps(DELIVERIES_PER_STEP, (limit) => {
      const deleted = ledger.deliveries.prune(clock.now() - retention.deliveriesMs, limit);
      this.#pruned.deliveries += deleted;
      return deleted === limit;
    });
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
    let left = retention.submissions;
    yield* inSteps(COUNTED_PER_STEP, (limit) => {
      const count = Math.min(left, limit);
      if (count > 0 && oldest) oldest = ledger.pruning.endedBefore(oldest, count);
      left -= count;
      return left > 0 && oldest !== undefined;
    });
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
    // What the reports have not counted yet stays, for example because counting failed.
    const countedThrough = ledger.reports.countedThrough();
    const ahead = ledger.pruning.readAhead(first, before, countedThrough);
    const size = new StepSize(SUBMISSIONS_PER_STEP);
    const deletingUntil =
      (end: EndPosition): PruningStep<EndPosition> =>
      (after, limit) =>
        ledger.pruning.submissions({ after, before: end, limit, countedThrough });
    let waitingSince = performance.now();
    let from: EndPosition | null = first;
    while (from !== null) {
      const range = ahead.next();
      if (!range) {
        if (performance.now() - waitingSince > MAX_READ_MS)
          from = this.#pruneOnce('submissions', size, from, deletingUntil(before));
        yield;
        continue;
      }
      const { through } = range;
      const end = through ? { ...through, id: through.id + 1 } : before;
      // The last step of a range is usually empty, so that no pause follows it.
      yield* this.#prune('submissions', size, from, deletingUntil(end));
      from = through;
      waitingSince = performance.now();
    }
  }

  *#events(): Generator<void> {
    const { ledger, clock, retention } = this.#deps;
    if (retention.eventsMs === null) return;
    const now = clock.now();
    const before = now - Math.max(retention.eventsMs, MIN_AGE_MS);
    yield* this.#prune('events', new StepSize(EVENTS_PER_STEP), 0, (after, limit) =>
      ledger.pruning.events({ after, before, now, limit }),
    );
  }

  /** Deletes in steps, each of which continues after the position of the one before. */
  *#prune<Position>(kind: PrunedKind, size: StepSize, first: Position, step: PruningStep<Position>): Generator<void> {
    let next = this.#pruneOnce(kind, size, first, step);
    for (; next !== null; next = this.#pruneOnce(kind, size, next, step)) yield;
  }

  /** Returns the position of the next step; null: there is none. */
  #pruneOnce<Position>(
    kind: PrunedKind,
    size: StepSize,
    after: Position,
    step: PruningStep<Position>,
  ): Position | null {
    return size.run((limit) => {
      const { deleted, next } = step(after, limit);
      this.#pruned[kind] += deleted;
      return next;
    });
  }

  *#shrink(): Generator<void> {
    yield* inSteps(PAGES_PER_STEP, (limit) => this.#deps.ledger.space.shrink(limit));
  }
}

/** Runs the steps of a task until one returns false. `limit`: the number of rows of a step. */
function* inSteps(maxRows: number, step: (limit: number) => boolean): Generator<void> {
  const size = new StepSize(maxRows);
  while (size.run(step)) yield;
}
