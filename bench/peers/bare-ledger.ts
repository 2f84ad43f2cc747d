import Database from 'better-sqlite3';
import { migrate } from '../../src/ledger/migrations.ts';

/** The ledger's own tables and indexes, as durable, and nothing but two prepared statements: a submission, and the first row of its history. */
export function openBareLedger(file: string): { insert: (ids: readonly string[]) => void } {
  const db = new Database(file);
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.pragma('foreign_keys = ON');
  migrate(db);
  db.exec("INSERT INTO upstreams (name) VALUES ('default') ON CONFLICT DO NOTHING");
  const submission = db.prepare(`
    INSERT INTO submissions (submission_id, upstream, status, watched, version, tracked_at, deadline_at, grace_ends_at,
                             stuck_at, outage_ms_before)
    VALUES (?, 'default', 'tracking', 1, 1, ?, ?, ?, ?, 0)`);
  const history = db.prepare("INSERT INTO history (submission, version, at, status) VALUES (?, 1, ?, 'tracking')");
  const insert = db.transaction((ids: readonly string[]) => {
    const now = Date.now();
    for (const id of ids) {
      const { lastInsertRowid } = submission.run(id, now, now + 86_400_000, now + 900_000, now + 600_000);
      history.run(lastInsertRowid, now);
    }
  });
  return { insert: insert.immediate };
}
