import type Database from 'better-sqlite3';
import type { Status } from '../../domain/submission.ts';
import { RECORD_MISSING_EVENTS } from '../events/missing-events.ts';
import type { LedgerDatabase } from '../file/ledger-database.ts';
import type { StatusCounts } from '../submissions/status-counts.ts';

/** A place in the order in which submissions ended. */
export type EndPosition = { endedAt: number; id: number };

/**
 * Deletes what is over, the oldest first. A submission goes with its history, its events and their deliveries. It stays
 * while it is open or asked about, and while one of its deliveries waits or is a dead letter. Throws LedgerError.
 */
export class Pruning {
  readonly #transactions: LedgerDatabase;
  readonly #counts: StatusCounts;
  readonly #sql: ReturnType<typeof prepareStatements>;

  constructor(transactions: LedgerDatabase, counts: StatusCounts) {
    this.#transactions = transactions;
    this.#counts = counts;
    this.#sql = prepareStatements(transactions.db);
  }

  /** Looks at up to `limit` submissions that ended between two positions. `next`: where to go on; null: that was all. */
  submissions(query: { after: EndPosition; before: EndPosition; limit: number }): Pruned<EndPosition> {
    const { after, before, limit } = query;
    return this.#transactions.unsyncedTransaction(() => {
      const rows = this.#sql.ended.all({
        afterEndedAt: after.endedAt,
        afterId: after.id,
        beforeEndedAt: before.endedAt,
        beforeId: before.id,
        limit,
      }) as (EndPosition & { status: Status; isFree: number })[];
      const free = rows.filter(({ isFree }) => isFree === 1);
      const events = free.flatMap(({ id }) => this.#sql.eventsOf.all(id) as number[]);
      this.#deleteEvents(events);
      for (const { id, status } of free) {
        this.#sql.deleteHistory.run(id);
        this.#sql.deleteSubmission.run(id);
        this.#counts.moved(status, null);
      }
      return { deleted: free.length, next: rows.length === limit ? (rows.at(-1) ?? null) : null };
    });
  }

  /** The submission that ended `count` places before that position; undefined: there are not so many. */
  endedBefore(position: EndPosition, count: number): EndPosition | undefined {
    return this.#transactions.read(() => this.#sql.earlier.get({ ...position, skip: count - 1 })) as
      | EndPosition
      | undefined;
  }

  /**
   * Looks at up to `limit` events behind `after` that are older than `before`, and deletes those that are not about an open
   * submission and not to be delivered. `next`: where to go on; null: that was all.
   */
  events(query: { after: number; before: number; now: number; limit: number }): Pruned<number> {
    const { limit } = query;
    return this.#transactions.unsyncedTransaction(() => {
      const rows = this.#sql.oldEvents.all(query) as { seq: number; isOld: number; isFree: number }[];
      const firstNew = rows.findIndex(({ isOld }) => isOld === 0);
      const old = firstNew < 0 ? rows : rows.slice(0, firstNew);
      const free = old.filter(({ isFree }) => isFree === 1);
      this.#deleteEvents(free.map(({ seq }) => seq));
      return { deleted: free.length, next: old.length === limit ? (old.at(-1)?.seq ?? null) : null };
    });
  }

  #deleteEvents(seqs: readonly number[]): void {
    for (const seq of seqs) {
      this.#sql.deleteDeliveries.run(seq);
      this.#sql.deleteEvent.run(seq);
    }
    if (seqs.length > 0) this.#sql.missing.run({ through: Math.max(...seqs) });
  }
}

export type Pruned<Position> = { deleted: number; next: Position | null };

/** Nothing but what arrived, or never has to: the others hold the event, with all that it tells of. */
const SETTLED = "('delivered', 'discarded')";

function prepareStatements(db: Database.Database) {
  return {
    ended: db.prepare(`
      -- The next submissions in the order of their ends, and which of them nothing holds. The newest of all stays: its number
      -- would be given again, to another one.
      SELECT s.ended_at AS endedAt, s.id, s.status,
             s.id < (SELECT max(id) FROM submissions) AND NOT EXISTS (
               SELECT 1 FROM outbox o JOIN deliveries d ON d.event = o.seq
               WHERE o.submission = s.id AND d.state NOT IN ${SETTLED}) AS isFree
      FROM submissions s
      WHERE s.ended_at IS NOT NULL AND s.watched = 0
        AND (s.ended_at, s.id) > (@afterEndedAt, @afterId) AND (s.ended_at, s.id) < (@beforeEndedAt, @beforeId)
      ORDER BY s.ended_at, s.id LIMIT @limit`),
    earlier: db.prepare(`
      -- So many ends before that one; from the index alone.
      SELECT ended_at AS endedAt, id FROM submissions
      WHERE ended_at IS NOT NULL AND watched = 0 AND (ended_at, id) < (@endedAt, @id)
      ORDER BY ended_at DESC, id DESC LIMIT 1 OFFSET @skip`),
    oldEvents: db.prepare(`
      -- The next events, which of them are old, and which of those nothing holds. A time in the future was written by a clock
      -- that was ahead: it must not end the search.
      SELECT o.seq, o.at < @before OR o.at > @now AS isOld,
             o.at < @before AND (o.submission IS NULL OR s.ended_at IS NOT NULL) AND NOT EXISTS (
               SELECT 1 FROM deliveries d WHERE d.event = o.seq AND d.state NOT IN ${SETTLED}) AS isFree
      FROM outbox o LEFT JOIN submissions s ON s.id = o.submission
      WHERE o.seq > @after ORDER BY o.seq LIMIT @limit`),
    eventsOf: db.prepare('SELECT seq FROM outbox WHERE submission = ?').pluck(),
    deleteDeliveries: db.prepare('DELETE FROM deliveries WHERE event = ?'),
    deleteEvent: db.prepare('DELETE FROM outbox WHERE seq = ?'),
    deleteHistory: db.prepare('DELETE FROM history WHERE submission = ?'),
    deleteSubmission: db.prepare('DELETE FROM submissions WHERE id = ?'),
    missing: db.prepare(RECORD_MISSING_EVENTS),
  };
}
