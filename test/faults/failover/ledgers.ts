import Database from 'better-sqlite3';
import { expect } from 'vitest';

type Row = { key: number; [column: string]: unknown };

/** Rows that are written once, each with its number. */
const APPEND_ONLY = {
  submissions: 'SELECT id AS key, submission_id FROM submissions ORDER BY id',
  history: 'SELECT seq AS key, * FROM history ORDER BY seq',
  outbox: 'SELECT seq AS key, * FROM outbox ORDER BY seq',
};

function read<T>(file: string, work: (db: Database.Database) => T): T {
  const db = new Database(file);
  try {
    return work(db);
  } finally {
    db.close();
  }
}

const values = <T>(file: string, sql: string): T[] =>
  read(file, (db) => db.prepare(sql).pluck().all() as T[]);

/**
 * Asserts that a restored ledger is the lost one at an earlier moment: each kind of rows is the
 * same up to one row, after which all are missing. Returns the ids of the missing submissions and
 * events.
 */
export function expectEarlierState(
  restored: string,
  lost: string,
): { submissions: string[]; events: string[] } {
  for (const [name, sql] of Object.entries(APPEND_ONLY)) {
    const [kept, all] = [restored, lost].map((file) =>
      read(file, (db) => db.prepare(sql).all() as Row[]),
    );
    expect(kept, name).toEqual(all?.slice(0, kept?.length));
  }
  const missing = (sql: string) => {
    const kept = new Set(values<string>(restored, sql));
    return values<string>(lost, sql).filter((id) => !kept.has(id));
  };
  return {
    submissions: missing('SELECT submission_id FROM submissions ORDER BY id'),
    events: missing('SELECT id FROM outbox ORDER BY seq'),
  };
}

/** Returns false for the empty copy, too, that the replica of a server is at first. */
export function hasSubmission(file: string, id: string): boolean {
  const tables = values(file, "SELECT name FROM sqlite_schema WHERE type = 'table'");
  return (
    tables.includes('submissions') &&
    values(file, 'SELECT submission_id FROM submissions').includes(id)
  );
}

/** Returns the ids of the submissions about which an event reports that they are final. */
export const finalizedIds = (file: string) =>
  values<string>(
    file,
    "SELECT s.submission_id FROM outbox o JOIN submissions s ON s.id = o.submission WHERE o.type = 'submission.finalized'",
  );

/** Returns the generation in a ledger, or in a claim of the primary. */
export const generationOf = (file: string) =>
  values<number>(file, "SELECT value ->> 'generation' FROM meta WHERE key = 'primary'")[0];
