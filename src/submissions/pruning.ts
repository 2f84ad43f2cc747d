import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { RECORD_MISSING_EVENTS } from '../ledger/open.ts';
import type { Status } from './submission.ts';
import type { StatusCounts } from './submission-queries.ts';

export type EndPosition = { endedAt: number; id: number };

/** `next`: the position to continue after; null if nothing is left. */
export type Pruned<Position> = { deleted: number; next: Position | null };

type EventsQuery = { after: number; before: number; now: number; limit: number };

/**
 * Deletes oldest first, with history, events and deliveries. Open or watched submissions stay, and
 * those with a waiting or dead delivery. Throws LedgerError.
 */
export class Pruning {
  readonly #db: LedgerDatabase;
  readonly #counts: StatusCounts;

  constructor(database: LedgerDatabase, counts: StatusCounts) {
    this.#db = database;
    this.#counts = counts;
  }

  /** Examines up to `limit` submissions behind a position that ended before a time (epoch ms). */
  submissions({
    after,
    before,
    limit,
  }: {
    after: EndPosition;
    before: number;
    limit: number;
  }): Pruned<EndPosition> {
    const rows = this.#db.rows<EndPosition & { status: Status; isDeletable: number }>(NEXT_ENDED, {
      afterEndedAt: after.endedAt,
      afterId: after.id,
      before,
      limit,
    });
    const deletable = rows.filter(({ isDeletable }) => isDeletable === 1);
    // Reading is cheaper than a transaction, and usually nothing is old enough.
    if (deletable.length > 0)
      this.#db.transaction(() => {
        this.#deleteEvents(
          deletable.flatMap(
            ({ id }) => this.#db.values<number>`SELECT seq FROM outbox WHERE submission = ${id}`,
          ),
        );
        for (const { id, status } of deletable) {
          this.#db.run`DELETE FROM history WHERE submission = ${id}`;
          this.#db.run`DELETE FROM submissions WHERE id = ${id}`;
          this.#counts.moved(status, null);
        }
      });
    return {
      deleted: deletable.length,
      next: rows.length === limit ? (rows.at(-1) ?? null) : null,
    };
  }

  /**
   * Deletes events about no submission after the number `after` that are older than `before`,
   * except those with a waiting or dead delivery.
   */
  events(query: EventsQuery): Pruned<number> {
    const old = this.#oldEvents(query);
    const deletable = old.filter(({ isDeletable }) => isDeletable === 1);
    if (deletable.length > 0)
      this.#db.transaction(() => this.#deleteEvents(deletable.map(({ seq }) => seq)));
    return {
      deleted: deletable.length,
      next: old.length === query.limit ? (old.at(-1)?.seq ?? null) : null,
    };
  }

  /** Reads up to the first event that is not old: usually only that one. */
  #oldEvents(query: EventsQuery): { seq: number; isDeletable: number }[] {
    const old = [];
    for (const event of this.#db.iterate<{ seq: number; isOld: number; isDeletable: number }>(
      NEXT_EVENTS,
      query,
    )) {
      if (event.isOld === 0) break;
      old.push(event);
    }
    return old;
  }

  #deleteEvents(seqs: readonly number[]): void {
    for (const seq of seqs) {
      this.#db.run`DELETE FROM deliveries WHERE event = ${seq}`;
      this.#db.run`DELETE FROM outbox WHERE seq = ${seq}`;
    }
    if (seqs.length > 0) this.#db.run(RECORD_MISSING_EVENTS, { through: Math.max(...seqs) });
  }
}

/** Of a delivery `d`. */
const HAS_OPEN_DELIVERY = "d.state NOT IN ('delivered', 'discarded')";

/** The newest submission of all stays, because SQLite would assign its row id again. */
const NEXT_ENDED = `
  SELECT s.ended_at AS endedAt, s.id, s.status,
         s.id < (SELECT max(id) FROM submissions) AND NOT EXISTS (
           SELECT 1 FROM outbox o JOIN deliveries d ON d.event = o.seq
           WHERE o.submission = s.id AND ${HAS_OPEN_DELIVERY}) AS isDeletable
  FROM submissions s
  WHERE s.ended_at IS NOT NULL AND s.watched = 0
    AND (s.ended_at, s.id) > (@afterEndedAt, @afterId) AND s.ended_at < @before
  ORDER BY s.ended_at, s.id LIMIT @limit + 0`;

/** A time in the future, by a clock that was ahead, counts as old and must not end the search. */
const NEXT_EVENTS = `
  SELECT o.seq, o.at < @before OR o.at > @now AS isOld,
         o.at < @before AND o.submission IS NULL AND NOT EXISTS (
           SELECT 1 FROM deliveries d WHERE d.event = o.seq AND ${HAS_OPEN_DELIVERY}) AS isDeletable
  FROM outbox o
  WHERE o.seq > @after ORDER BY o.seq LIMIT @limit + 0`;
