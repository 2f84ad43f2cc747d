import type { Clock } from '../lib/clock.ts';
import type { Objective } from '../submissions/objective.ts';
import type { EndPosition, Pruned } from '../submissions/pruning.ts';
import type { Ledger } from './ledger-stores.ts';

const INTERVAL_MS = 60_000;
const PRUNE_REPORTS_MS = 3_600_000;
/** The pause between two transactions, for other work. */
const PAUSE_MS = 10;
/** Rows of one transaction, which takes two or three milliseconds while its pages are in memory. */
const SUBMISSIONS_PER_STEP = 20;
const DELIVERIES_PER_STEP = 100;
const EVENTS_PER_STEP = 50;
const COUNTED_PER_STEP = 10_000;
const PAGES_PER_STEP = 100;
const HISTORY_PER_STEP = 100;
const OBJECTIVES_PER_STEP = 500;
const REPORT_ROWS_PER_STEP = 50;
const AUDIT_PER_STEP = 500;
const DAY_MS = 86_400_000;
/**
 * Ended submissions and events stay at least this long for clients that wait for them or read the
 * live feed.
 */
const MIN_AGE_MS = 3_600_000;

/** How long ended records are kept, in milliseconds, and how many submissions; null: no limit. */
export type Retention = {
  deliveriesMs: number;
  submissionsMs: number | null;
  submissions: number | null;
  eventsMs: number | null;
  auditMs: number | null;
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
type PruningStep<Position> = (after: Position) => Pruned<Position>;

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
 * Once a minute, counts the changes of the last minute for the reports, deletes what exceeds the
 * retention, returns free space to the file system and shortens a large log. Works in steps of a
 * few milliseconds, each in its own transaction; an interrupted run is completed by the next one.
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
      this.#audit(),
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
    yield* inSteps(HISTORY_PER_STEP, (limit) =>
      ledger.reports.count({ metadataKey, now: clock.now(), limit }),
    );
    if (clock.now() < this.#pruneReportsAt) return;
    this.#pruneReportsAt = clock.now() + PRUNE_REPORTS_MS;
    yield* inSteps(REPORT_ROWS_PER_STEP, (limit) => ledger.reports.prune(clock.now(), limit));
    for (const upstream of reports.objectives.keys())
      yield* inSteps(REPORT_ROWS_PER_STEP, (limit) =>
        ledger.objectives.prune(upstream, clock.now(), limit),
      );
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

  /**
   * Counts from the newest submission back to the oldest one to keep, then deletes those that ended
   * before it.
   */
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
    // If those that ended in time were deleted before they are judged, the others alone would spend
    // the error budget.
    const judgedAfterMs = [...reports.objectives.values()].map(
      ({ withinMs }) => withinMs + INTERVAL_MS,
    );
    const minAgeMs = Math.max(MIN_AGE_MS, ...judgedAfterMs);
    const minAge = { endedAt: Math.min(position.endedAt, clock.now() - minAgeMs), id: 0 };
    const before = position.endedAt < minAge.endedAt ? position : minAge;
    const first = { endedAt: Number.MIN_SAFE_INTEGER, id: 0 };
    // What the reports have not counted yet stays, for example because counting failed.
    const countedThrough = ledger.reports.countedThrough();
    yield* this.#prune('submissions', first, (after) =>
      ledger.pruning.submissions({ after, before, limit: SUBMISSIONS_PER_STEP, countedThrough }),
    );
  }

  *#events(): Generator<void> {
    const { ledger, clock, retention } = this.#deps;
    if (retention.eventsMs === null) return;
    const now = clock.now();
    const before = now - Math.max(retention.eventsMs, MIN_AGE_MS);
    yield* this.#prune('events', 0, (after) =>
      ledger.pruning.events({ after, before, now, limit: EVENTS_PER_STEP }),
    );
  }

  /** Deletes in steps, each of which continues after the position of the one before. */
  *#prune<Position>(
    kind: PrunedKind,
    first: Position,
    step: PruningStep<Position>,
  ): Generator<void> {
    for (let position = first; ; ) {
      const { deleted, next } = step(position);
      this.#pruned[kind] += deleted;
      if (next === null) return;
      position = next;
      yield;
    }
  }

  /** Deletes old entries of the audit, at most once a day, because each deletion adds an entry. */
  *#audit(): Generator<void> {
    const { ledger, clock, retention } = this.#deps;
    if (retention.auditMs === null) return;
    const now = clock.now();
    const { oldestAt } = ledger.audit;
    if (oldestAt === undefined || oldestAt > now - retention.auditMs - DAY_MS) return;
    const before = now - retention.auditMs;
    yield* inSteps(AUDIT_PER_STEP, (limit) => ledger.audit.prune(before, now, limit) === limit);
  }

  *#shrink(): Generator<void> {
    yield* inSteps(PAGES_PER_STEP, (limit) => this.#deps.ledger.space.shrink(limit));
  }
}

/** Runs the steps of a task until one returns false. `limit`: the number of rows of a step. */
function* inSteps(limit: number, step: (limit: number) => boolean): Generator<void> {
  while (step(limit)) yield;
}
