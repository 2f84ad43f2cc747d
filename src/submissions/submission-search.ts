import {
  findBounded,
  type Position,
  positionAfter,
  readFound,
  type Search,
} from '../ledger/bounded-search.ts';
import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { takePage } from '../ledger/page.ts';
import { orderOf, type SubmissionFilter, searchOf } from './search-sources.ts';
import type { StatusCounts } from './status-counts.ts';
import { STATUSES, type Status, type Submission } from './submission.ts';
import { SELECT_SUBMISSION, type SubmissionRow, toSubmission } from './submission-rows.ts';
import { textMatcher } from './text-search.ts';

/**
 * Some 20 ms of the event loop if SQLite has to read the rows from the memory of the system (row
 * search).
 */
const MAX_EXAMINED = 4_000;
/** The same for a search for a text, which reads each row twice. */
const MAX_INSPECTED = 2_500;
/**
 * The ids and metadata that a page searches for a text. Large metadata would take longer than the
 * rows.
 */
const MAX_INSPECTED_BYTES = 512 * 1_024;

/**
 * Lists and counts submissions. A page takes a bounded time, however many submissions there are: it
 * may end before `limit` submissions although more follow (docs/decisions/0021). Throws
 * LedgerError.
 */
export class SubmissionSearch {
  readonly #db: LedgerDatabase;
  readonly #counts: StatusCounts;

  constructor(database: LedgerDatabase, counts: StatusCounts) {
    this.#db = database;
    this.#counts = counts;
  }

  /**
   * Returns a page in the order of `orderOf(query)`. `after`: `next` of the previous page; null at
   * the end. `examinedTo`: the time in that order up to which the page examined; null at the end,
   * and in the order of ids.
   */
  list(query: SubmissionFilter & { limit: number; after?: Position | null | undefined }): {
    submissions: Submission[];
    next: Position | null;
    examinedTo: number | null;
  } {
    return this.#db.snapshot(() => {
      const found = this.#find(query, query.after, query.limit);
      const rows = readFound(found, (id) => this.#db.row<SubmissionRow>(BY_ROW, id));
      const { page } = takePage(rows, query.limit);
      const next = positionAfter(found, page.length);
      return {
        submissions: page.map(toSubmission),
        next,
        examinedTo: next && this.#timeOf(query, next),
      };
    });
  }

  /** Returns the number of submissions behind `after` and up to `next`; null: up to the end. */
  count(filter: SubmissionFilter, after?: Position): { count: number; next: Position | null } {
    const { statuses = STATUSES, ...others } = filter;
    const isByStatus =
      after === undefined && Object.values(others).every((condition) => condition === undefined);
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
    if (filter.search === undefined)
      return findBounded(this.#db, { ...search, maxExamined: MAX_EXAMINED }, limit);
    const inspection = this.#inspectionFor(filter.search);
    return findBounded(this.#db, { ...search, inspection, maxExamined: MAX_INSPECTED }, limit);
  }

  #inspectionFor(text: string): NonNullable<Search['inspection']> {
    const isMatch = textMatcher(text);
    const inspect = (id: number) => {
      const { submissionId, metadata } = this.#db.row<TextRow>(TEXT_BY_ROW, id) ?? NO_TEXT;
      return {
        isMatch: isMatch(submissionId, metadata),
        bytes: submissionId.length + (metadata?.length ?? 0),
      };
    };
    return { inspect, maxBytes: MAX_INSPECTED_BYTES };
  }

  #timeOf(filter: SubmissionFilter, [first = 0]: Position): number | null {
    switch (orderOf(filter)) {
      case 'newest':
        return (
          this.#db.value<number>`SELECT tracked_at FROM submissions WHERE id = ${first}` ?? null
        );
      case 'id':
        return null;
      default:
        return Number(first);
    }
  }

  #countOf(statuses: readonly Status[]): number {
    const counts = this.#counts.get();
    return [...new Set(statuses)].reduce((sum, status) => sum + counts[status], 0);
  }
}

type TextRow = { submissionId: string; metadata: string | null };
const NO_TEXT: TextRow = { submissionId: '', metadata: null };
const TEXT_BY_ROW = 'SELECT submission_id AS submissionId, metadata FROM submissions WHERE id = +?';

/** `+?`: see FIND in submission-queries.ts. */
const BY_ROW = `${SELECT_SUBMISSION} WHERE s.id = +?`;
