import { join } from 'node:path';
import Database from 'better-sqlite3';
import { onTestFinished } from 'vitest';
import type { Position } from '../../../src/ledger/bounded-search.ts';
import type {
  HistoryEntry,
  Submission,
  TrackRequest,
} from '../../../src/submissions/submission.ts';
import { Ledger } from '../../../src/wiring/ledger-stores.ts';
import { tempFolder } from '../temp-folder.ts';
import { createLedger } from './new-ledger.ts';

/** A ledger in a file with the upstream `default`; closed when the test ends. */
export function openLedger(options: Partial<ConstructorParameters<typeof Ledger>[0]> = {}): Ledger {
  const file = options.file ?? join(tempFolder(), 'dawatch.db');
  createLedger(file);
  const ledger = new Ledger({ now: 0, ...options, file });
  onTestFinished(() => ledger.close());
  ledger.upstream('default');
  return ledger;
}

/** Every submission, newest first, page by page. */
export function allSubmissions(ledger: Ledger): Submission[] {
  const all: Submission[] = [];
  for (let after: Position | null | undefined; ; ) {
    const { submissions, next } = ledger.search.list({ limit: 100_000, after });
    all.push(...submissions);
    if (next === null) return all;
    after = next;
  }
}

/** Limits far beyond every time in the tests. */
export function trackRequest(
  submissionId: string,
  fields: Partial<TrackRequest> = {},
): TrackRequest {
  const far = { deadlineAt: 86_400_000, graceEndsAt: 86_400_000, stuckAt: 86_400_000 };
  return {
    submissionId,
    upstream: 'default',
    ...far,
    metadata: null,
    callbackUrl: null,
    ...fields,
  };
}

export function trackRequests(count: number, prefix = 's'): TrackRequest[] {
  return Array.from({ length: count }, (_, index) => trackRequest(`${prefix}${index}`));
}

/** A second connection, independent of the ledger; closed when the test ends. */
export function rawConnection(file: string): Database.Database {
  const db = new Database(file);
  onTestFinished(() => {
    db.close();
  });
  return db;
}

export type OutboxRow = {
  seq: number;
  id: string;
  type: string;
  at: number;
  upstream: string;
  submission_id: string | null;
  version: number | null;
};

/** Returns the events of the outbox, oldest first. */
export function outboxOf(file: string): OutboxRow[] {
  return rawConnection(file)
    .prepare(
      `-- Every event with the submission and the change it tells of.
      SELECT o.seq, o.id, o.type, o.at, o.upstream, s.submission_id, h.version
      FROM outbox o LEFT JOIN submissions s ON s.id = o.submission LEFT JOIN history h ON h.seq = o.history_seq
      ORDER BY o.seq`,
    )
    .all() as OutboxRow[];
}

export function integrityOf(file: string): string {
  const db = rawConnection(file);
  const dangling = db.pragma('foreign_key_check') as unknown[];
  return dangling.length > 0
    ? `${dangling.length} rows point nowhere`
    : String(db.pragma('integrity_check(1)', { simple: true }));
}

/** Returns whether versions count from 1 without a gap and every row names the previous status. */
export function isUnbroken(history: readonly HistoryEntry[]): boolean {
  return history.every((entry, index) => {
    const before = history[index - 1];
    const follows = before === undefined || before.seq < entry.seq;
    return (
      follows && entry.version === index + 1 && entry.previousStatus === (before?.status ?? null)
    );
  });
}
