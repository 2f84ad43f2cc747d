import { isLocked } from '../ledger/errors.ts';
import { saveDetached } from '../ledger/restore.ts';
import { shrink } from '../ledger/space.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import type { Pruned } from '../submissions/pruning.ts';
import type { Ledger } from './ledger-stores.ts';
import type { Config, Tuning } from './settings.ts';

const INTERVAL_MS = 60_000;
/** The pause between two transactions, for other work. */
const PAUSE_MS = 10;
/** Rows of one transaction, which takes two or three milliseconds while its pages are in memory. */
const SUBMISSIONS_PER_STEP = 20;
const DELIVERIES_PER_STEP = 100;
const EVENTS_PER_STEP = 50;
const PAGES_PER_STEP = 100;
const AUDIT_PER_STEP = 500;
const DAY_MS = 86_400_000;
/** For clients that wait for ended submissions and events, or read the live feed. */
const MIN_AGE_MS = 3_600_000;

/** How long ended records are kept, in milliseconds; null: no limit. */
export type Retention = {
  deliveriesMs: number;
  submissionsMs: number | null;
  auditMs: number;
};

export type PrunedCounts = { submissions: number; events: number; deliveries: number };

type PrunedKind = 'submissions' | 'events';
type PruningStep<Position> = (after: Position) => Pruned<Position>;

type MaintenanceDeps = {
  ledger: Ledger;
  clock: Clock;
  retention: Retention;
  /** Called after a run that deleted anything. */
  onPruned: (counts: PrunedCounts) => void;
  onFailed: (error: unknown) => void;
};

/**
 * Once a minute, deletes what exceeds the retention and returns free space, in steps of a few
 * milliseconds, each a transaction; the next run completes an interrupted one.
 */
export class Maintenance {
  readonly #deps: MaintenanceDeps;
  #cancel: (() => void) | undefined;
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

  /** `run`: yields pauses in milliseconds. */
  #continue(run: Iterator<number, void>): void {
    const { done, value } = run.next();
    if (done) this.start();
    else this.#cancel = this.#deps.clock.after(value, () => this.#continue(run));
  }

  /** A task that fails, on a full disk for example, does not prevent the others. */
  *#run(): Generator<number, void> {
    const { onPruned, onFailed } = this.#deps;
    this.#pruned = { submissions: 0, events: 0, deliveries: 0 };
    const tasks = [
      this.#deliveries(),
      this.#submissions(),
      this.#events(),
      this.#audit(),
      this.#shrink(),
    ];
    for (const [index, task] of tasks.entries()) {
      if (index > 0) yield PAUSE_MS;
      try {
        while (!task.next().done) yield PAUSE_MS;
      } catch (error) {
        onFailed(error);
      }
    }
    if (Object.values(this.#pruned).some((count) => count > 0)) onPruned(this.#pruned);
  }

  *#deliveries(): Generator<void> {
    const { ledger, clock, retention } = this.#deps;
    yield* inSteps(DELIVERIES_PER_STEP, (limit) => {
      const deleted = ledger.deliveries.prune(clock.now() - retention.deliveriesMs, limit);
      this.#pruned.deliveries += deleted;
      return deleted === limit;
    });
  }

  *#submissions(): Generator<void> {
    const { ledger, clock, retention } = this.#deps;
    if (retention.submissionsMs === null) return;
    const before = clock.now() - Math.max(retention.submissionsMs, MIN_AGE_MS);
    const first = { endedAt: Number.MIN_SAFE_INTEGER, id: 0 };
    yield* this.#prune('submissions', first, (after) =>
      ledger.pruning.submissions({ after, before, limit: SUBMISSIONS_PER_STEP }),
    );
  }

  /** Events about no submission; the others are deleted with their submission. */
  *#events(): Generator<void> {
    const { ledger, clock, retention } = this.#deps;
    if (retention.submissionsMs === null) return;
    const now = clock.now();
    const before = now - Math.max(retention.submissionsMs, MIN_AGE_MS);
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
    const now = clock.now();
    const { oldestAt } = ledger.audit;
    if (oldestAt === undefined || oldestAt > now - retention.auditMs - DAY_MS) return;
    const before = now - retention.auditMs;
    yield* inSteps(AUDIT_PER_STEP, (limit) => ledger.audit.prune(before, now, limit) === limit);
  }

  *#shrink(): Generator<void> {
    yield* inSteps(PAGES_PER_STEP, (limit) => shrink(this.#deps.ledger.database, limit));
  }
}

const FILE_CHECK_MS = 10_000;

/** Every 10 s, and at `stop`, saves the data of a ledger whose file was removed or replaced. */
function watchFile({ ledger, clock, log }: { ledger: Ledger; clock: Clock; log: Log }) {
  const { database } = ledger;
  let isSaved = false;
  let running = Promise.resolve();
  let cancel = (): void => undefined;
  const check = async () => {
    try {
      const error = database.detached();
      if (error && !isSaved) {
        const isInUse = isLocked(error);
        const copy = isInUse ? undefined : await saveDetached(database.connection, clock.now());
        log.error({ err: error, copy }, 'ledger.detached');
      }
      isSaved = error !== undefined;
    } catch (error) {
      log.error({ err: error }, 'ledger.detached');
    }
  };
  const schedule = () => {
    cancel = clock.after(FILE_CHECK_MS, () => {
      running = check().then(schedule);
    });
  };
  schedule();
  return {
    async stop(): Promise<void> {
      await running;
      cancel();
      await check();
    },
  };
}

export function startMaintenance({
  config,
  tuning,
  log,
  ...deps
}: {
  config: Config;
  tuning: Tuning;
  log: Log;
  ledger: Ledger;
  clock: Clock;
}) {
  const { submissions_days: days } = config.retention;
  const maintenance = new Maintenance({
    ...deps,
    retention: {
      deliveriesMs: tuning.deliveriesKeptMs,
      submissionsMs: days === 0 ? null : days * DAY_MS,
      auditMs: tuning.auditKeptMs,
    },
    onPruned: (counts) => log.info(counts, 'ledger.pruned'),
    onFailed: (error) => log.error({ err: error }, 'ledger.maintenance_failed'),
  });
  maintenance.start();
  const file = watchFile({ ...deps, log });
  return {
    async stop(): Promise<void> {
      maintenance.stop();
      await file.stop();
    },
  };
}

/** Runs the steps of a task until one returns false. `limit`: the number of rows of a step. */
function* inSteps(limit: number, step: (limit: number) => boolean): Generator<void> {
  while (step(limit)) yield;
}
