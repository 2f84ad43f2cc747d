// Runs in its own process, which can be killed: SQLite blocks the event loop during the check.
import Database from 'better-sqlite3';

const [file = '', check = ''] = process.argv.slice(2);
try {
  const db = new Database(file, { readonly: true, fileMustExist: true });
  process.stdout.write(JSON.stringify({ verdict: db.pragma(`${check}(1)`, { simple: true }) }));
} catch (error) {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  process.stdout.write(JSON.stringify({ code, message: error instanceof Error ? error.message : String(error) }));
}
