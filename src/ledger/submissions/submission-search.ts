import { STATUSES, type Status, type Submission } from '../../domain/submission.ts';
import { findBounded, type Position } from '../file/bounded-search.ts';
import type { LedgerDatabase } from '../file/ledger-database.ts';
import { takePage } from '../file/page.ts';
import { type SubmissionFilter, searchOf } from './search-sources.ts';
import type { StatusCounts } from './status-counts.ts';
import { SELECT_SUBMISSION, type SubmissionRow, toSubmission } from './submission-rows.ts';

/** Some 20 ms of the event loop if the rows are not cached (row search). */
const MAX_EXAMINED = 5_000;

/**
 * Lists and counts submissions. A page takes a bounded time, however many submissions there are: it may end before `limit`
 * submissions although more follow (docs/decisions/0021). Throws LedgerError.
 */
export class SubmissionSearch {
  readonly #db: LedgerDatabase;
  readonly #counts: StatusCounts;

  constructor(database: LedgerDatabase, counts: StatusCounts) {
    this.#db = database;
    this.#counts = counts;
  }

  /** Returns a page in the order of `orderOf(query)`. `after`: `next` of the previous page; null at the end. */
  list(query: SubmissionFilter & { limit: number; after?: Position | null | undefined }): {
    submissions: Submission[];
    next: Position | null;
  } {
    return this.#db.snapshot(() => {
      const { found, next } = this.#find(query, query.after, query.limit);
      const { page, hasMore } = takePage(this.#read(found), query.limit);
      return { submissions: page.map(toSubmission), next: hasMore ? (found[page.length - 1]?.position ?? null) : next };
    });
  }

  /** Returns the number of submissions behind `after` and up to `next`; null: up to the end. */
  count(filter: SubmissionFilter, after?: Position): { count: number; next: Position | null } {
    const { statuses = STATUSES, ...others } = filter;
    const isByStatus = after === undefined && Object.values(others).every((condition) => condition === undefined);
    if (isByStatus) return { count: this.#countOf(statuses), next: null };
    return this.#db.snapshot(() => {
      const { found, next } = this.#find(filter, after, Number.POSITIVE_INFINITY);
      return { count: found.length, next };
    });
  }

  /** Returns whether there are, or have been, submissions of this upstream. */
  hasUpstream(name: string): boolean {
    return this.#db.value`SELECT 1 FROM upstreams WHERE name = ${name}` !== undefined;
  }

  #find(filter: SubmissionFilter, after: Position | null | undefined, limit: number) {
    const countOf = (statuses: readonly Status[]) => this.#countOf(statuses);
    const search = searchOf(filter, after ?? undefined, countOf);
    return findBounded(this.#db, { ...search, maxExamined: MAX_EXAMINED }, limit);
  }

  *#read(found: readonly { id: number }[]): Generator<SubmissionRow> {
    for (const { id } of found) {
      const row = this.#db.row<SubmissionRow>(BY_ROW, id);
      if (row) yield row;
    }
  }

  #countOf(statuses: readonly Status[]): number {
    const counts = this.#counts.get();
    return [...new Set(statuses)].reduce((sum, status) => sum + counts[status], 0);
  }
}

/** `+?`: see FIND in submission-queries.ts. */
const BY_ROW = `${SELECT_SUBMISSION} WHERE s.id = +?`;
