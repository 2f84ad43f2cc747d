// Reads a ledger as of one moment until the first message, as an export does, and keeps its
// connection open until it is killed.
import Database from 'better-sqlite3';

const db = new Database(process.argv[2] ?? '');
db.exec('BEGIN');
process.send?.(db.prepare('SELECT count(*) FROM submissions').pluck().get());
// The listener stays, and with it the process.
process.on('message', () => {
  db.exec('COMMIT');
  process.send?.('ended');
});
