import { rawConnection } from './ledger-file.ts';

/** What two ledgers can not share, because it is drawn at random. */
const RANDOM: Record<string, readonly string[]> = { outbox: ['id'], meta: ['value'] };

/** Every row of every table, as it is in the file. */
export function allRows(file: string): Record<string, unknown[]> {
  const db = rawConnection(file);
  const tables = db
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_stat%' ORDER BY name")
    .pluck()
    .all() as string[];
  return Object.fromEntries(
    tables.map((table) => {
      const rows = db.prepare(`SELECT * FROM ${table} ORDER BY 1`).all() as Record<string, unknown>[];
      for (const row of rows) for (const column of RANDOM[table] ?? []) delete row[column];
      return [table, rows];
    }),
  );
}
