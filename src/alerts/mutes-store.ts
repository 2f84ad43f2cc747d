import { callerShown } from '../access/people.ts';
import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { takePage } from '../ledger/page.ts';
import type { Mute, NewMute } from '../notifications/alert.ts';

/**
 * Maximum number of mutes that have not ended. Each check compares every firing alert with every
 * active mute.
 */
export const MAX_MUTES = 1_000;

/**
 * The times in which alerts are recorded and not sent, and maintenance windows. Throws LedgerError.
 */
export class Mutes {
  readonly #db: LedgerDatabase;

  constructor(database: LedgerDatabase) {
    this.#db = database;
  }

  /**
   * `by`: name of the credential. Returns undefined if there are MAX_MUTES already. Deletes those
   * that have ended.
   */
  add(mute: NewMute, by: string, now: number): Mute | undefined {
    return this.#db.transaction(() => {
      this.#db.run`DELETE FROM mutes WHERE ends_at <= ${now}`;
      if ((this.#db.value<number>('SELECT count(*) FROM mutes') ?? 0) >= MAX_MUTES)
        return undefined;
      const { rule, subject, from, until, reason } = mute;
      const { lastInsertRowid } = this.#db.run`
        INSERT INTO mutes (rule, subject, starts_at, ends_at, reason, created_at, created_by)
        VALUES (${rule}, ${subject}, ${from}, ${until}, ${reason}, ${now}, ${by})`;
      return this.#db.row<Mute>(`${SELECT} WHERE id = ?`, lastInsertRowid);
    });
  }

  /**
   * Returns the mutes that have not ended, newest first, and the position to continue `before`;
   * null at the end.
   */
  list(query: { limit: number; before?: number | undefined; now: number }): {
    mutes: Mute[];
    nextBefore: number | null;
  } {
    const { limit, before = Number.MAX_SAFE_INTEGER, now } = query;
    const rows = this.#db.iterate<Mute>(
      `${SELECT} WHERE id < ? AND ends_at > ? ORDER BY id DESC LIMIT ?`,
      before,
      now,
      limit + 1,
    );
    const { page, hasMore } = takePage(rows, limit);
    return { mutes: page, nextBefore: hasMore ? (page.at(-1)?.id ?? null) : null };
  }

  /**
   * Ends a mute, or cancels it before its start, and returns it. Returns undefined if there is none
   * that has not ended.
   */
  delete(id: number, now: number): Mute | undefined {
    return this.#db.transaction(() => {
      const mute = this.#db.row<Mute>(`${SELECT} WHERE id = ? AND ends_at > ?`, id, now);
      if (mute) this.#db.run`DELETE FROM mutes WHERE id = ${id}`;
      return mute;
    });
  }

  active(now: number): Mute[] {
    return this.#db.rows(`${SELECT} WHERE starts_at <= ? AND ends_at > ?`, now, now);
  }
}

const SELECT = `
  SELECT id, rule, subject, starts_at AS "from", ends_at AS until, reason, created_at AS createdAt,
         ${callerShown('created_by')} AS createdBy
  FROM mutes`;
