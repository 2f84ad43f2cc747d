import Database from 'better-sqlite3';
import { nearestTime } from '../../domain/stored.ts';
import { type HistoryEntry, isFinal, type Status, type Submission } from '../../domain/submission.ts';
import { guarded, LedgerError, toLedgerError } from '../file/errors.ts';
import { assertOwnSchema, isDawatchDatabase } from '../file/migrations.ts';
import { existingLedgerPath } from '../file/open.ts';
import { type HistoryRow, OUTAGE_MS, type SubmissionRow, toHistoryEntry, toSubmission } from './submission-rows.ts';

export type ExportQuery = {
  /** Those that changed last at that time or later, and before that one; epoch milliseconds. */
  since: number;
  until: number;
  /** Undefined: all. */
  statuses?: readonly Status[] | undefined;
  now: number;
};

export type ExportedSubmission = {
  submission: Submission;
  /** Moved by the outages of its upstream while it is open. */
  deadlineAt: number;
  changedAt: number;
  history: HistoryEntry[];
};

/**
 * One moment of a ledger, beside a server that may go on writing; nothing is written. Submissions come one by one, in the
 * order in which they were tracked. Throws LedgerError.
 */
export class LedgerExport {
  readonly #file: string;
  readonly #db: Database.Database;

  constructor(file: string) {
    this.#file = file;
    this.#db = guarded(file, () => new Database(existingLedgerPath(file), { readonly: true, fileMustExist: true }));
    try {
      guarded(file, () => {
        assertOwnSchema(this.#db, file);
        if (!isDawatchDatabase(this.#db)) throw new LedgerError('foreign', `${file} is empty: it is no ledger`);
        this.#db.exec('BEGIN');
      });
    } catch (error) {
      this.#db.close();
      throw error;
    }
  }

  close(): void {
    this.#db.close();
  }

  /** How many there are; `position` of what is read goes up to it. */
  count(): number {
    return guarded(this.#file, () => Number(this.#db.prepare('SELECT count(*) FROM submissions').pluck().get()));
  }

  /** `position`: how many were looked at by then. */
  *read({ since, until, statuses, now }: ExportQuery): Generator<ExportedSubmission & { position: number }> {
    const wanted = statuses && new Set(statuses);
    const outages = this.#outages(now);
    const ofHistory = this.#db.prepare(HISTORY);
    let position = 0;
    try {
      for (const row of this.#db.prepare(ALL).iterate() as Iterable<SubmissionRow & { changed_at: number }>) {
        position += 1;
        if (row.changed_at < since || row.changed_at >= until || wanted?.has(row.status) === false) continue;
        const submission = toSubmission(row);
        const { deadlineAt, outageMsBefore } = submission;
        const movedMs = isFinal(row.status) ? 0 : (outages.get(row.upstream) ?? outageMsBefore) - outageMsBefore;
        const history = (ofHistory.all(row.id) as HistoryRow[]).map(toHistoryEntry);
        yield {
          position,
          submission,
          deadlineAt: deadlineAt + movedMs,
          changedAt: nearestTime(row.changed_at),
          history,
        };
      }
    } catch (error) {
      throw toLedgerError(this.#file, error);
    }
  }

  #outages(now: number): Map<string, number> {
    return guarded(this.#file, () => new Map(this.#db.prepare(OUTAGES).raw().all({ now }) as [string, number][]));
  }
}

const ALL = `
  -- Every submission with what its newest row of history says, in the order of the table.
  SELECT s.*, h.upstream_state, h.error, h.answer, h.at AS changed_at
  FROM submissions s CROSS JOIN history h ON h.submission = s.id AND h.version = s.version ORDER BY s.id`;

const HISTORY = `
  -- Every change of one submission.
  SELECT seq, version, at, status, previous_status, upstream_state, error, answer
  FROM history WHERE submission = ? ORDER BY version`;

const OUTAGES = `
  -- What the outage clock of each upstream shows.
  SELECT name, ${OUTAGE_MS} FROM upstreams`;
