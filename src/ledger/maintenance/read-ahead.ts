import type { LedgerDatabase } from '../file/ledger-database.ts';
import { searchable } from '../file/search-migration.ts';
import { ENDED, type EndPosition, IS_DELETABLE, searchParameters } from './ended.ts';

/** Submissions that one request reads: a few steps of the pruning. Checkpoints wait for a request, and so does the end of the process. */
export const PER_REQUEST = 60;
/**
 * How many submissions are read beyond those that may be deleted: SQLite merges a page that has become almost empty with the next one, which has
 * up to 350 entries of an index.
 */
export const LEAD = 400;

/** Submissions that have been read, from the end of those before them to `through`; null: to the end of the search. */
export type ReadRange = { through: EndPosition | null };

/** The first row of POSITION: the last submission of a request. */
type LastRead = EndPosition & { count: number };

/**
 * Reads the ended submissions of one search, and what is deleted with them, in another thread before the event loop needs it. A page that the
 * system has to read from the disk takes a millisecond, or a hundred of them if the disk is busy, and a submission is on some ten pages.
 */
export class ReadAhead {
  readonly #db: LedgerDatabase;
  readonly #before: EndPosition;
  readonly #countedThrough: number;
  /** The last submission of each request whose submissions have not been returned yet, oldest first. */
  readonly #ends: EndPosition[] = [];
  #readThrough: EndPosition;
  #isReading = false;
  #isComplete: boolean;

  constructor(db: LedgerDatabase, after: EndPosition, before: EndPosition, countedThrough: number) {
    this.#db = db;
    this.#before = before;
    this.#countedThrough = countedThrough;
    this.#readThrough = after;
    // Usually nothing is old enough.
    this.#isComplete =
      !db.hasThread ||
      db.value(`SELECT 1 ${ENDED} LIMIT 1`, searchParameters(after, before, countedThrough)) === undefined;
  }

  /** Returns the next submissions that need not be read from the disk any more; undefined while they are read. */
  next(): ReadRange | undefined {
    this.#read();
    if (this.#isComplete) return { through: null };
    if (!this.#isAhead) return undefined;
    const through = this.#ends.shift() ?? null;
    this.#read();
    return { through };
  }

  /** Whether enough has been read beyond the next range. */
  get #isAhead(): boolean {
    return (this.#ends.length - 1) * PER_REQUEST >= LEAD;
  }

  /** Sends one request at most. It is not repeated at its end, so that there are times in which no read keeps the log. */
  #read(): void {
    if (this.#isReading || this.#isComplete || this.#isAhead) return;
    const parameters = searchParameters(this.#readThrough, this.#before, this.#countedThrough);
    const isRequested = this.#db.readAhead(QUERIES, parameters, (rows) => {
      this.#isReading = false;
      const last = rows?.[0] as LastRead | undefined;
      // After an error, the event loop reads the rest.
      this.#isComplete = last?.count !== PER_REQUEST;
      if (!last || this.#isComplete) return;
      this.#readThrough = { endedAt: last.endedAt, id: last.id };
      this.#ends.push(this.#readThrough);
    });
    this.#isReading = isRequested;
  }
}

const POSITION = `
  SELECT endedAt, id, count(*) OVER () AS count FROM (SELECT s.ended_at AS endedAt, s.id ${ENDED} LIMIT ${PER_REQUEST})
  ORDER BY endedAt DESC, id DESC LIMIT 1`;

const DELETABLE = `(SELECT s.* ${ENDED} LIMIT ${PER_REQUEST}) s`;

/**
 * Read what deleting the submissions reads: their rows, with long texts, and the entries of the rows in the indexes. CROSS JOIN keeps the order of
 * the tables, and the counts keep every table in the query.
 */
export const QUERIES = [
  POSITION,
  `SELECT count(i.id) + count(b.id) + count(t.id) + count(r.traceparent) + total((
     SELECT count(*) FROM submission_metadata WHERE (key, value, submission) IN (${searchable('s')})))
   FROM ${DELETABLE}
   CROSS JOIN submissions i ON i.submission_id = s.submission_id
   CROSS JOIN submissions b INDEXED BY submissions_by_status ON b.status = s.status AND b.id = s.id
   CROSS JOIN submissions t INDEXED BY submissions_tracked ON t.tracked_at = s.tracked_at AND t.id = s.id
   LEFT JOIN submission_traces r ON r.submission = s.id
   WHERE ${IS_DELETABLE}`,
  `SELECT total(length(c.answer)) + total(length(c.changes)) + count(e.seq)
   FROM ${DELETABLE}
   CROSS JOIN history c ON c.submission = s.id
   LEFT JOIN outbox e ON e.history_seq = c.seq
   WHERE ${IS_DELETABLE}`,
  `SELECT total(length(e.detail)) + count(i.seq) + count(n.id) + count(c.id) + count(t.id) + total(length(a.response))
   FROM ${DELETABLE}
   CROSS JOIN outbox e ON e.submission = s.id
   CROSS JOIN outbox i ON i.id = e.id
   LEFT JOIN deliveries q ON q.event = e.seq
   LEFT JOIN deliveries n INDEXED BY deliveries_ended ON n.ended_at = q.ended_at AND n.state <> 'waiting' AND n.id = q.id
   LEFT JOIN deliveries c INDEXED BY deliveries_created ON c.created_at = q.created_at AND c.id = q.id
   LEFT JOIN deliveries t INDEXED BY deliveries_by_destination ON t.destination = q.destination AND t.id = q.id
   LEFT JOIN attempts a ON a.delivery = q.id
   WHERE ${IS_DELETABLE}`,
];
