import type { Clock } from '../../domain/clock.ts';
import type { Ledger } from '../ledger.ts';
import type { EndPosition } from './pruning.ts';

const LOOK_MS = 60_000;
/** Between two small pieces of work, for everything else. */
const PAUSE_MS = 10;
/** Of one transaction, so that it takes two or three milliseconds. */
const SUBMISSIONS_AT_ONCE = 20;
const DELIVERIES_AT_ONCE = 100;
const EVENTS_AT_ONCE = 50;
const COUNTED_AT_ONCE = 10_000;
const PAGES_AT_ONCE = 100;
/** Whoever waits for a submission, or reads the live feed, has seen by then what became of it. */
const FRESH_MS = 3_600_000;

/** For how long things are kept after they are over, in milliseconds, and how many; null: for ever, all. */
export type Retention = {
  deliveriesMs: number;
  submissionsMs: number | null;
  submissions: number | null;
  eventsMs: number | null;
};

export type PrunedCounts = { submissions: number; events: number; deliveries: number };

type MaintenanceDeps = {
  ledger: Ledger;
  clock: Clock;
  retention: Retention;
  /** What one look deleted, if it was anything. */
  onPruned: (counts: PrunedCounts) => void;
  onFailed: (error: unknown) => void;
};

/**
 * Once a minute: deletes what is kept no longer, gives free space back, empties a large log. In pieces of a few
 * milliseconds, each a transaction of its own; one that is cut off is taken up with the next look.
 */
export class Maintenance {
  readonly #deps: MaintenanceDeps;
  #cancel: (() => void) | undefined;
  #pruned: PrunedCounts = none();

  constructor(deps: MaintenanceDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#cancel = this.#deps.clock.after(LOOK_MS, () => this.#goOn(this.#look()));
  }

  stop(): void {
    this.#cancel?.();
  }

  #goOn(look: Iterator<void>): void {
    if (look.next().done) this.start();
    else this.#cancel = this.#deps.clock.after(PAUSE_MS, () => this.#goOn(look));
  }

  /** One of them that fails, on a full disk say, keeps none of the others from their turn. */
  *#look(): Generator<void> {
    const { ledger, onPruned, onFailed } = this.#deps;
    this.#pruned = none();
    for (const work of [this.#deliveries(), this.#oldSubmissions(), this.#tooMany(), this.#events(), this.#shrink()]) {
      try {
        yield* this.#whileLogIsSmall(work);
        ledger.space.checkpoint();
      } catch (error) {
        onFailed(error);
      }
    }
    if (Object.values(this.#pruned).some((count) => count > 0)) onPruned(this.#pruned);
  }

  /** Whoever reads one moment for long keeps the log from being emptied: to delete meanwhile would only fill the disk. */
  *#whileLogIsSmall(work: Generator<void>): Generator<void> {
    while (this.#deps.ledger.space.checkpoint() && !work.next().done) yield;
  }

  *#deliveries(): Generator<void> {
    const { ledger, clock, retention } = this.#deps;
    for (let deleted = DELIVERIES_AT_ONCE; deleted === DELIVERIES_AT_ONCE; ) {
      yield;
      deleted = ledger.deliveries.prune(clock.now() - retention.deliveriesMs, DELIVERIES_AT_ONCE);
      this.#pruned.deliveries += deleted;
    }
  }

  *#oldSubmissions(): Generator<void> {
    const { clock, retention } = this.#deps;
    if (retention.submissionsMs !== null) yield* this.#ended({ endedAt: clock.now() - retention.submissionsMs, id: 0 });
  }

  /** Counts from the newest back to the oldest that is kept, then deletes what ended before that. */
  *#tooMany(): Generator<void> {
    const { ledger, retention } = this.#deps;
    if (retention.submissions === null) return;
    let oldest: EndPosition | undefined = { endedAt: Number.MAX_SAFE_INTEGER, id: 0 };
    for (let left = retention.submissions; left > 0 && oldest; left -= COUNTED_AT_ONCE) {
      yield;
      oldest = ledger.pruning.endedBefore(oldest, Math.min(left, COUNTED_AT_ONCE));
    }
    if (oldest) yield* this.#ended(oldest);
  }

  *#ended(before: EndPosition): Generator<void> {
    const { ledger, clock } = this.#deps;
    const stale = { endedAt: Math.min(before.endedAt, clock.now() - FRESH_MS), id: 0 };
    const bound = before.endedAt < stale.endedAt ? before : stale;
    for (let after: EndPosition | null = { endedAt: Number.MIN_SAFE_INTEGER, id: 0 }; after; ) {
      yield;
      const { deleted, next } = ledger.pruning.submissions({ after, before: bound, limit: SUBMISSIONS_AT_ONCE });
      this.#pruned.submissions += deleted;
      after = next;
    }
  }

  *#events(): Generator<void> {
    const { ledger, clock, retention } = this.#deps;
    if (retention.eventsMs === null) return;
    const now = clock.now();
    const before = now - Math.max(retention.eventsMs, FRESH_MS);
    for (let after: number | null = 0; after !== null; ) {
      yield;
      const { deleted, next } = ledger.pruning.events({ after, before, now, limit: EVENTS_AT_ONCE });
      this.#pruned.events += deleted;
      after = next;
    }
  }

  *#shrink(): Generator<void> {
    do yield;
    while (this.#deps.ledger.space.shrink(PAGES_AT_ONCE));
  }
}

function none(): PrunedCounts {
  return { submissions: 0, events: 0, deliveries: 0 };
}
