import { canonicalId, type HistoryEntry, type Status, type Submission, uuidPrefix } from '../../domain/submission.ts';
import type { LedgerDatabase } from '../file/ledger-database.ts';
import { takePage } from '../file/page.ts';
import {
  HISTORY,
  type HistoryRow,
  SUBMISSION_COLUMNS,
  type SubmissionRow,
  toHistoryEntry,
  toSubmission,
  UUID_GLOB,
} from './submission-rows.ts';

export type ListQuery = {
  status?: Status | undefined;
  limit: number;
  /** Only submissions tracked before the one at this position. */
  before?: number | undefined;
};

export type PrefixQuery = {
  prefix: string;
  limit: number;
  /** Only ids greater than this one, which need not be tracked. */
  after?: string | undefined;
};

/** Reads submissions and their history. */
export class SubmissionQueries {
  readonly #db: LedgerDatabase;

  constructor(database: LedgerDatabase) {
    this.#db = database;
  }

  /**
   * Returns the row of an id in the given spelling, else in its canonical form: a ledger that was created before schema 8 may
   * hold one UUID in several spellings, each with its own history.
   */
  findRow(submissionId: string): SubmissionRow | undefined {
    const row = this.#db.row<SubmissionRow>(FIND, submissionId);
    if (row) return row;
    const canonical = canonicalId(submissionId);
    return canonical === submissionId ? undefined : this.#db.row<SubmissionRow>(FIND, canonical);
  }

  get(submissionId: string): Submission | undefined {
    const row = this.findRow(submissionId);
    return row && toSubmission(row);
  }

  /** Returns each submission with its history, oldest change first, all as of one moment; undefined for unknown ids. */
  getWithHistory(
    submissionIds: readonly string[],
  ): ({ submission: Submission; history: HistoryEntry[] } | undefined)[] {
    return this.#db.snapshot(() =>
      submissionIds.map((id) => {
        const row = this.findRow(id);
        if (!row) return undefined;
        const history = this.#db.rows<HistoryRow>(HISTORY, row.id);
        return { submission: toSubmission(row), history: history.map(toHistoryEntry) };
      }),
    );
  }

  /** Returns the number of watched submissions by upstream. */
  watchedCounts(): Map<string, number> {
    const rows = this.#db.rows<{ upstream: string; count: number }>(
      'SELECT upstream, count(*) AS count FROM submissions WHERE watched = 1 GROUP BY upstream',
    );
    return new Map(rows.map(({ upstream, count }) => [upstream, count]));
  }

  /** Returns submissions, newest first, and the position to continue `before`; null at the end. */
  list({ status, limit, before = Number.MAX_SAFE_INTEGER }: ListQuery): {
    submissions: Submission[];
    nextBefore: number | null;
  } {
    const parameters = { status, before, limit: limit + 1 };
    const rows = this.#db.iterate<SubmissionRow>(status === undefined ? LIST : LIST_BY_STATUS, parameters);
    const { page, hasMore } = takePage(rows, limit);
    return { submissions: page.map(toSubmission), nextBefore: hasMore ? (page.at(-1)?.id ?? null) : null };
  }

  /**
   * Returns submissions whose ids begin with the prefix (of UUIDs in any case), ordered by id, and the id to continue
   * `after`; null at the end.
   */
  findByPrefix({ prefix, limit, after = '' }: PrefixQuery): { submissions: Submission[]; nextAfter: string | null } {
    // "!" is the least character of an id and "~" the greatest.
    const rangeOf = (start: string) => ({ from: after < start ? start : `${after}!`, end: `${start}\x7f` });
    const read = (sql: string, start: string, count: number) =>
      takePage(this.#db.iterate<SubmissionRow>(sql, { ...rangeOf(start), limit: count + 1 }), count);
    const lower = uuidPrefix(prefix);
    const { page, hasMore } = this.#db.snapshot(() => {
      const exact = read(FIND_BY_PREFIX, prefix, limit);
      if (lower === undefined || lower === prefix || exact.hasMore) return exact;
      // Upper case sorts before lower case, so the canonical UUIDs follow all of the exact matches.
      const uuids = read(FIND_UUIDS_BY_PREFIX, lower, limit - exact.page.length);
      return { page: [...exact.page, ...uuids.page], hasMore: uuids.hasMore };
    });
    return { submissions: page.map(toSubmission), nextAfter: hasMore ? (page.at(-1)?.submissionId ?? null) : null };
  }
}

const SELECT_SUBMISSION = `
  SELECT ${SUBMISSION_COLUMNS} FROM submissions s JOIN history h ON h.submission = s.id AND h.version = s.version`;

/** With `?` instead of `+?`, SQLite would prepare the statement anew for every bound id, which takes longer than the search. */
const FIND = `${SELECT_SUBMISSION} WHERE s.submission_id = +?`;

const LIST = `${SELECT_SUBMISSION} WHERE s.id < @before ORDER BY s.id DESC LIMIT @limit`;
const LIST_BY_STATUS = `
  ${SELECT_SUBMISSION} WHERE s.status = @status AND s.id < @before ORDER BY s.id DESC LIMIT @limit`;

/** Reads the unique index of the ids in order, so a page costs the same however many ids match. */
const FIND_BY_PREFIX = `
  ${SELECT_SUBMISSION} WHERE s.submission_id >= @from AND s.submission_id < @end
  ORDER BY s.submission_id LIMIT @limit`;
const FIND_UUIDS_BY_PREFIX = `
  ${SELECT_SUBMISSION}
  WHERE s.submission_id >= @from AND s.submission_id < @end AND s.submission_id GLOB '${UUID_GLOB}'
  ORDER BY s.submission_id LIMIT @limit`;
