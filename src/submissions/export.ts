import { guarded } from '../ledger/errors.ts';
import { LedgerDatabase } from '../ledger/ledger-database.ts';
import { openSnapshot } from '../ledger/open.ts';
import { assertLedger } from '../ledger/schema.ts';
import { nearestTime } from '../lib/stored.ts';
import { matchOf, type SubmissionFilter, textMatcher } from './search.ts';
import { type HistoryEntry, isFinal, type Submission } from './submission.ts';
import {
  HISTORY,
  type HistoryRow,
  SUBMISSION_COLUMNS,
  type SubmissionRow,
  toHistoryEntry,
  toSubmission,
} from './submission-queries.ts';
import { extendedDeadline } from './transition.ts';
import { OUTAGE_MS } from './upstream.ts';

export type ExportQuery = {
  /**
   * Only submissions whose last change was at `since` or later and before `until`; epoch
   * milliseconds.
   */
  since: number;
  until: number;
  /** Undefined: all submissions. */
  filter?: SubmissionFilter | undefined;
  now: number;
};

export type ExportedSubmission = {
  submission: Submission;
  /** For an open submission, moved by the outages of its upstream. */
  deadlineAt: number;
  changedAt: number;
  history: HistoryEntry[];
};

/**
 * Reads a ledger as of one moment, while a server may be writing. Yields submissions in the order
 * of tracking. Throws LedgerError.
 */
export class LedgerExport {
  readonly #db: LedgerDatabase;

  constructor(file: string) {
    const db = openSnapshot(file);
    this.#db = new LedgerDatabase(db, file);
    try {
      guarded(file, () => assertLedger(db, file));
    } catch (error) {
      db.close();
      throw error;
    }
  }

  close(): void {
    this.#db.connection.close();
  }

  /** Returns whether there are, or have been, submissions of this upstream. */
  hasUpstream(name: string): boolean {
    return this.#db.value`SELECT 1 FROM upstreams WHERE name = ${name}` !== undefined;
  }

  /** Returns the number of submissions, which is the last `position` of `read`. */
  count(): number {
    return Number(this.#db.value('SELECT count(*) FROM submissions'));
  }

  /** `position`: the number of submissions examined so far. */
  *read({
    since,
    until,
    filter = {},
    now,
  }: ExportQuery): Generator<ExportedSubmission & { position: number }> {
    const { match, parameters } = matchOf(filter);
    const hasText = filter.search === undefined ? () => true : textMatcher(filter.search);
    const outages = this.#outages(now);
    let position = 0;
    type Row = SubmissionRow & { changedAt: number; isMatch: number | null };
    for (const { changedAt, isMatch, ...row } of this.#db.iterate<Row>(
      `SELECT ${SUBMISSION_COLUMNS}, h.at AS changedAt, (${match}) AS isMatch
       FROM submissions s CROSS JOIN history h ON h.submission = s.id AND h.version = s.version ORDER BY s.id`,
      parameters,
    )) {
      position += 1;
      if (changedAt < since || changedAt >= until || !isMatch) continue;
      if (!hasText(row.submissionId, row.metadata)) continue;
      const submission = toSubmission(row);
      const outageMs = outages.get(row.upstream) ?? submission.outageMsBefore;
      const deadlineAt = isFinal(row.status)
        ? submission.deadlineAt
        : extendedDeadline(submission, outageMs);
      const history = this.#db.rows<HistoryRow>(HISTORY, row.id).map(toHistoryEntry);
      yield { position, submission, deadlineAt, changedAt: nearestTime(changedAt), history };
    }
  }

  /** Returns the outage clock of each upstream, in milliseconds. */
  #outages(now: number): Map<string, number> {
    const sql = `SELECT name, ${OUTAGE_MS} AS outageMs FROM upstreams`;
    const rows = this.#db.rows<{ name: string; outageMs: number }>(sql, { now });
    return new Map(rows.map(({ name, outageMs }) => [name, outageMs]));
  }
}
