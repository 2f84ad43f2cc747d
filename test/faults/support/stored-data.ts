import Database from 'better-sqlite3';
import { dataOf } from '../../../src/submissions/classify.ts';

/** Returns the data of each submission from the newest row of its history. */
export function dataByIdOf(file: string): Map<string, Record<string, unknown> | null> {
  const db = new Database(file, { readonly: true });
  try {
    const rows = db
      .prepare(`
        SELECT s.submission_id, h.response FROM submissions s
        JOIN history h ON h.submission = s.id AND h.version = s.version`)
      .all() as { submission_id: string; response: string | null }[];
    return new Map(rows.map(({ submission_id, response }) => [submission_id, dataOf(response)]));
  } finally {
    db.close();
  }
}
