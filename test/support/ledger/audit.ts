import Database from 'better-sqlite3';
import { expect } from 'vitest';
import { type Role, sha256 } from '../../../src/access/access.ts';
import { CredentialStore, makeToken } from '../../../src/access/credentials-store.ts';
import { openBeside } from '../../../src/ledger/open.ts';

type Row = { submission_id: string; status: string; watched: number; version: number };
type HistoryRow = {
  submission_id: string;
  version: number;
  status: string;
  previous_status: string | null;
  upstream_state: string | null;
  error: string | null;
  response: string | null;
  changes: string | null;
  chain: string | null;
  chain_reason: string | null;
};

const MAX_SHOWN = 20;

/**
 * Asserts what must hold for a ledger after any fault: it contains every acknowledged id, histories
 * have no gap and no repeat, the outbox contains each reported change exactly once, and the file
 * passes its integrity check. `isVerified`: the chain must confirm what is finalized.
 */
export function auditLedger(
  file: string,
  acknowledged: Iterable<string>,
  { isVerified = false } = {},
): Map<string, string> {
  const db = new Database(file, { readonly: true });
  try {
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
    expect(db.pragma('foreign_key_check')).toEqual([]);
    const rows = db
      .prepare('SELECT submission_id, status, watched, version FROM submissions')
      .all() as Row[];
    const statuses = new Map(rows.map((row) => [row.submission_id, row.status]));
    expect([...acknowledged].filter((id) => !statuses.has(id))).toEqual([]);
    auditHistories(db, rows);
    const notReportedOnce = db
      .prepare(`
        -- Finalized submissions without exactly one event about it.
        SELECT s.submission_id FROM submissions s
        LEFT JOIN outbox o ON o.submission = s.id AND o.type = 'submission.finalized'
        WHERE s.status = 'finalized' GROUP BY s.id HAVING count(o.seq) <> 1`)
      .all();
    expect(notReportedOnce).toEqual([]);
    if (isVerified) expect(notConfirmed(db)).toEqual([]);
    return statuses;
  } finally {
    db.close();
  }
}

/** Returns the submissions that became final without a confirmation of the chain. */
function notConfirmed(db: Database.Database): unknown[] {
  return db
    .prepare(`
      SELECT s.submission_id, h.chain, h.chain_reason
      FROM history h JOIN submissions s ON s.id = h.submission
      WHERE h.status = 'finalized' AND h.chain IS NOT 'confirmed'`)
    .all();
}

function auditHistories(db: Database.Database, rows: readonly Row[]): void {
  const history = db
    .prepare(`
      SELECT s.submission_id, h.version, h.status, h.previous_status, h.upstream_state, h.error, h.response, h.changes,
             h.chain, h.chain_reason
      FROM history h JOIN submissions s ON s.id = h.submission ORDER BY s.id, h.version`)
    .all() as HistoryRow[];
  const last = new Map<string, HistoryRow>();
  // A single expectation, because there may be a hundred thousand rows.
  const wrong: string[] = [];
  for (const row of history) {
    const { submission_id: id, version, previous_status } = row;
    const before = last.get(id);
    if (version !== (before?.version ?? 0) + 1)
      wrong.push(`${id}: ${version} follows ${before?.version}`);
    if (previous_status !== (before?.status ?? null))
      wrong.push(
        `${id}: ${version} claims to follow ${previous_status}, but follows ${before?.status}`,
      );
    if (before && responseKey(row) === responseKey(before))
      wrong.push(`${id}: ${version} equals the one before`);
    last.set(id, row);
  }
  for (const { submission_id: id, status, version } of rows) {
    const newest = last.get(id);
    if (newest?.status !== status || newest.version !== version)
      wrong.push(
        `${id} is ${status} at ${version}, its history ${newest?.status} at ${newest?.version}`,
      );
  }
  expect(wrong.slice(0, MAX_SHOWN)).toEqual([]);
}

function responseKey({ version: _, previous_status: __, ...rest }: HistoryRow): string {
  return JSON.stringify(rest);
}

/** Works with the credentials of a ledger, also while a server has it. */
export function withStore<T>(database: string, work: (store: CredentialStore) => T): T {
  const { database: ledger, close } = openBeside({ file: database, now: 0 });
  try {
    return work(new CredentialStore(ledger));
  } finally {
    close();
  }
}

/** Stores a token of this role. */
export function storeToken(database: string, role: Role, name = `the ${role}`) {
  const token = makeToken(role);
  const { id } = withStore(database, (store) => store.add({ hash: sha256(token), role, name }, 0));
  return { id, token, revoke: () => withStore(database, (store) => store.revoke(id, 1)) };
}
