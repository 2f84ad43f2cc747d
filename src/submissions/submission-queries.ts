import { CommittedChanges, type LedgerDatabase } from '../ledger/ledger-database.ts';
import { DamagedRowError, storedObject, storedTime } from '../lib/json.ts';
import { readChanges } from './option-changes.ts';
import type { Deadline } from './store-results.ts';
import {
  canonicalId,
  type HistoryEntry,
  isFinal,
  isHeld,
  type ProvenBlock,
  STATUSES,
  Status,
  type Submission,
  TEXT_OPTIONS,
} from './submission.ts';

/** A submission as stored, named like its fields. `endedAt`: the time of its final status. */
export type SubmissionRow = Omit<Submission, 'watched' | 'stuck' | 'metadata' | 'proof'> & {
  id: number;
  watched: number;
  stuck: number;
  inVerification: number;
  endedAt: number | null;
  metadata: string | null;
  blockHash: string | null;
  leaf: number | null;
  dataRoot: string | null;
};

/** Columns of a submission `s`, with the report of the upstream in its newest change `h`. */
const SUBMISSION_COLUMNS = `
  s.id, s.submission_id AS submissionId, s.upstream, s.status, s.watched, s.stuck, s.in_verification AS inVerification, s.version, s.polls,
  s.polled_at AS polledAt, s.not_found_since AS notFoundSince,
  s.tracked_at AS trackedAt, s.finalized_at AS finalizedAt, s.finality_at AS finalityAt,
  s.finality_source AS finalitySource, s.ended_at AS endedAt, s.deadline_at AS deadlineAt,
  s.grace_ends_at AS graceEndsAt, s.stuck_at AS stuckAt, s.metadata,
  s.callback_url AS callbackUrl, ${TEXT_OPTIONS.map(({ name, key }) => `s.${name} AS ${key}`).join(', ')}, h.upstream_state AS upstreamState, h.error, h.response AS envelope,
  h.chain, h.chain_reason AS chainReason, h.proof_block AS blockHash, h.leaf,
  (SELECT data_root FROM proof_blocks WHERE hash = h.proof_block) AS dataRoot`;

export const SELECT_SUBMISSION = `
  SELECT ${SUBMISSION_COLUMNS} FROM submissions s JOIN history h ON h.submission = s.id AND h.version = s.version`;

/** A pattern for UUIDs in the syntax of GLOB. */
export const UUID_GLOB = [8, 4, 4, 4, 12].map((digits) => '[0-9A-Fa-f]'.repeat(digits)).join('-');

/** Throws DamagedRowError. */
export function toSubmission({ id: _id, ...stored }: SubmissionRow): Submission {
  const { endedAt: _endedAt, inVerification: _inVerification, ...others } = stored;
  const { blockHash, leaf, dataRoot, ...row } = others;
  const name = `the submission ${row.submissionId}`;
  storedTime(row.trackedAt, name, 'tracked_at');
  storedTime(row.deadlineAt, name, 'deadline_at');
  storedTime(row.finalizedAt ?? 0, name, 'finalized_at');
  storedTime(row.finalityAt ?? 0, name, 'finality_at');
  for (const { name: column, key, schema } of TEXT_OPTIONS)
    if (!schema.nullable().safeParse(row[key]).success) throw new DamagedRowError(name, column);
  return {
    ...row,
    watched: row.watched === 1,
    stuck: row.stuck === 1,
    proof: blockHash && leaf !== null && dataRoot ? { blockHash, leaf, dataRoot } : null,
    metadata: storedObject(row.metadata, name, 'metadata'),
  };
}

/** The history of a submission, by its row, oldest change first. `+?`: see FIND. */
const HISTORY = `
  SELECT seq, version, at, status, previous_status AS previousStatus, upstream_state AS upstreamState, error,
         response AS envelope, changes, chain, chain_reason AS chainReason
  FROM history WHERE submission = +? ORDER BY version`;

type HistoryRow = Omit<HistoryEntry, 'changes'> & { changes: string | null };

/** Throws DamagedRowError. */
function toHistoryEntry(row: HistoryRow): HistoryEntry {
  storedTime(row.at, `the history entry ${row.seq}`, 'at');
  return { ...row, changes: row.changes === null ? null : readChanges(row.changes) };
}

/** A lookup ends early at this much text: a stored response may be a megabyte. */
const MAX_LOOKUP_CHARS = 4 * 1024 * 1024;

type SubmissionHistory = { submission: Submission; history: HistoryEntry[] };
type PendingRead = {
  submissionId: string;
  resolve: (found: SubmissionHistory | undefined) => void;
  reject: (error: unknown) => void;
};

/** What the chain is asked about. `chain` and `id`: its position in `listInVerification`. */
export type InVerification = Pick<
  Submission,
  'submissionId' | 'version' | 'trackedAt' | 'dataHash' | 'envelope'
> & { chain: string; id: number };

export class SubmissionQueries {
  readonly #db: LedgerDatabase;
  readonly #reads: PendingRead[] = [];

  constructor(database: LedgerDatabase) {
    this.#db = database;
  }

  /** Returns the row of an id; a UUID may be in upper case. */
  findRow(submissionId: string): SubmissionRow | undefined {
    return this.#db.row<SubmissionRow>(FIND, canonicalId(submissionId));
  }

  get(submissionId: string): Submission | undefined {
    const row = this.findRow(submissionId);
    return row && toSubmission(row);
  }

  provenBlock(hash: string): ProvenBlock | undefined {
    return this.#db.row<ProvenBlock>`
      SELECT hash, header, data_root AS dataRoot, bridge_root AS bridgeRoot, leaves
      FROM proof_blocks WHERE hash = ${hash}`;
  }

  dataHashOf(submissionId: string): string | null {
    const sql = 'SELECT data_hash FROM submissions WHERE submission_id = ?';
    return this.#db.value<string | null>(sql, submissionId) ?? null;
  }

  newestChangeAt(): number | undefined {
    return this.#db.value<number>('SELECT at FROM history ORDER BY seq DESC LIMIT 1');
  }

  /** Returns both as of one moment, oldest change first; undefined for an unknown id. */
  getWithHistory(submissionId: string): SubmissionHistory | undefined {
    return this.#db.snapshot(() => {
      const row = this.findRow(submissionId);
      if (!row) return undefined;
      const history = this.#db.rows<HistoryRow>(HISTORY, row.id);
      return { submission: toSubmission(row), history: history.map(toHistoryEntry) };
    });
  }

  /** Reads of a turn share a snapshot: with 64 callers a third less CPU (row status-reads). */
  readWithHistory(submissionId: string): Promise<SubmissionHistory | undefined> {
    return new Promise((resolve, reject) => {
      this.#reads.push({ submissionId, resolve, reject });
      if (this.#reads.length === 1) setImmediate(() => this.#readTogether());
    });
  }

  #readTogether(): void {
    const reads = this.#reads.splice(0);
    try {
      this.#db.snapshot(() => {
        for (const { submissionId, resolve, reject } of reads)
          try {
            resolve(this.getWithHistory(submissionId));
          } catch (error) {
            reject(error);
          }
      });
    } catch (error) {
      // The snapshot could not begin.
      for (const { reject } of reads) reject(error);
    }
  }

  /** In the order of the request. `remaining`: not read, because the result is long. */
  lookup(submissionIds: readonly string[]): {
    submissions: Submission[];
    notFound: string[];
    remaining: string[];
  } {
    return this.#db.snapshot(() => {
      const submissions: Submission[] = [];
      const notFound: string[] = [];
      let chars = 0;
      for (const [index, id] of submissionIds.entries()) {
        const row = this.findRow(id);
        chars += (row?.envelope?.length ?? 0) + (row?.metadata?.length ?? 0);
        if (chars > MAX_LOOKUP_CHARS && submissions.length > 0)
          return { submissions, notFound, remaining: submissionIds.slice(index) };
        if (row) submissions.push(toSubmission(row));
        else notFound.push(id);
      }
      return { submissions, notFound, remaining: [] };
    });
  }

  /** Returns a page of what the scheduler is rebuilt from, and where the next begins. */
  listWatched(upstream: string, { after, limit }: { after: number; limit: number }) {
    type WatchedRow = Pick<
      Submission,
      'submissionId' | 'trackedAt' | 'status' | 'polledAt' | 'finalizedAt' | 'chain'
    >;
    const rows = this.#db.rows<WatchedRow & { id: number }>`
      SELECT id, submission_id AS submissionId, tracked_at AS trackedAt, status, polled_at AS polledAt,
             finalized_at AS finalizedAt, chain
      FROM submissions WHERE upstream = ${upstream} AND watched = 1 AND id > ${after} ORDER BY id LIMIT ${limit}`;
    const watched = rows.map((row) => {
      const { submissionId, trackedAt, status, polledAt, finalizedAt } = row;
      const seen = status !== Status.tracking;
      return { submissionId, trackedAt, seen, polledAt, finalizedAt, isHeld: isHeld(row) };
    });
    return { watched, next: rows.length === limit ? (rows.at(-1)?.id ?? null) : null };
  }

  /** Returns a page of the submissions that are in verification, in any order. */
  listInVerification(
    upstream: string,
    { after, limit }: { after: { chain: string; id: number }; limit: number },
  ): InVerification[] {
    return this.#db.rows<InVerification>`
      SELECT s.id, s.chain, s.submission_id AS submissionId, s.version, s.tracked_at AS trackedAt,
             s.data_hash AS dataHash, h.response AS envelope
      FROM submissions s JOIN history h ON h.submission = s.id AND h.version = s.version
      WHERE s.upstream = ${upstream} AND s.in_verification = 1 AND (s.chain, s.id) > (${after.chain}, ${after.id})
      ORDER BY s.chain, s.id LIMIT ${limit}`;
  }

  listDeadlines(
    upstream: string,
    { after, until, limit }: { after: { at: number; id: number }; until: number; limit: number },
  ): Deadline[] {
    return this.#db.rows<Deadline>`
      SELECT submission_id AS submissionId, deadline_at AS at, id FROM submissions
      WHERE upstream = ${upstream} AND ended_at IS NULL AND deadline_at <= ${until}
        AND (deadline_at, id) > (${after.at}, ${after.id})
      ORDER BY deadline_at, id LIMIT ${limit}`;
  }

  /** Returns a finalized submission, among the newest 1,000 of all upstreams. */
  findShownId(upstream: string): string | undefined {
    return this.#db.value<string>`
      SELECT submission_id
      FROM (SELECT upstream, submission_id FROM submissions WHERE status = 'finalized' ORDER BY tracked_at DESC LIMIT 1000)
      WHERE upstream = ${upstream} LIMIT 1`;
  }

  watchedCounts(): Map<string, number> {
    const rows = this.#db.rows<{ upstream: string; count: number }>(
      'SELECT upstream, count(*) AS count FROM submissions WHERE watched = 1 GROUP BY upstream',
    );
    return new Map(rows.map(({ upstream, count }) => [upstream, count]));
  }
}

/** `+?`: with `?`, SQLite would prepare the statement anew for every bound id. */
const FIND = `${SELECT_SUBMISSION} WHERE s.submission_id = +?`;

/** Counted at the first use, because there may be millions, then updated by each commit. */
export class StatusCounts {
  readonly #db: LedgerDatabase;
  readonly #moves: CommittedChanges<{ from: Status | null; to: Status | null }>;
  #counts: Record<Status, number> | undefined;

  constructor(database: LedgerDatabase) {
    this.#db = database;
    this.#moves = new CommittedChanges(database);
    this.#moves.onCommitted((moves) => {
      const counts = this.#counts;
      if (!counts) return;
      for (const { from, to } of moves) {
        if (from !== null) counts[from] -= 1;
        if (to !== null) counts[to] += 1;
      }
    });
  }

  /** In a transaction. `from` null: a new submission; `to` null: a deleted one. */
  moved(from: Status | null, to: Status | null): void {
    if (this.#counts && from !== to) this.#moves.add({ from, to });
  }

  /** Called after a commit, once for each submission that ended, with its final status. */
  onEnded(listener: (status: Status) => void): void {
    // Moves are only noted once the submissions have been counted.
    this.get();
    this.#moves.onCommitted((moves) => {
      for (const { to } of moves) if (to !== null && isFinal(to)) listener(to);
    });
  }

  get(): Record<Status, number> {
    this.#counts ??= this.#count();
    return { ...this.#counts };
  }

  #count(): Record<Status, number> {
    const rows = this.#db.rows<{ status: Status; count: number }>(
      'SELECT status, count(*) AS count FROM submissions GROUP BY status',
    );
    const counts = Object.fromEntries(STATUSES.map((status) => [status, 0])) as Record<
      Status,
      number
    >;
    for (const { status, count } of rows) counts[status] = count;
    return counts;
  }
}
