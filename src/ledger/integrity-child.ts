// Runs in its own process, which can be killed: SQLite blocks the event loop during the check.
import Database from 'better-sqlite3';

/**
 * Columns that contain JSON. SQLite does not verify constraints of a connection that only reads.
 */
const JSON_COLUMNS = [
  ['submissions', 'submission_id', 'metadata'],
  ['history', 'seq', 'response'],
  ['history', 'seq', 'changes'],
  ['outbox', 'id', 'detail'],
  ['webhooks', 'webhook_id', 'types'],
  ['webhooks', 'webhook_id', 'metadata'],
] as const;

const [file = '', check = ''] = process.argv.slice(2);
try {
  const db = new Database(file, { readonly: true, fileMustExist: true });
  const verdict = String(db.pragma(`${check}(1)`, { simple: true }));
  const isSound = verdict === 'ok' && check === 'integrity_check';
  process.stdout.write(JSON.stringify({ verdict: (isSound && damagedRow(db)) || verdict }));
} catch (error) {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  process.stdout.write(
    JSON.stringify({ code, message: error instanceof Error ? error.message : String(error) }),
  );
}

/**
 * Returns which row has a text that is not JSON; undefined if there is none, or if the file is not
 * a ledger.
 */
function damagedRow(db: Database.Database): string | undefined {
  for (const [table, key, column] of JSON_COLUMNS) {
    if (!db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(table))
      continue;
    const row = db
      .prepare(`SELECT ${key} FROM ${table} WHERE json_valid(${column}) = 0 LIMIT 1`)
      .pluck()
      .get();
    if (row !== undefined) return `the ${column} of ${row} in ${table} is not JSON`;
  }
  return undefined;
}
