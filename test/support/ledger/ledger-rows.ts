import { rawConnection } from './ledger-file.ts';

/** Columns with random values, in which two ledgers differ. */
const RANDOM: Record<string, readonly string[]> = { outbox: ['id'], meta: ['value'] };

/** Returns every row of every table. */
export function allRows(file: string): Record<string, unknown[]> {
  const db = rawConnection(file);
  const tables = db
    .prepare(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_stat%' ORDER BY name",
    )
    .pluck()
    .all() as string[];
  return Object.fromEntries(
    tables.map((table) => {
      const rows = db.prepare(`SELECT * FROM ${table} ORDER BY 1`).all() as Record<
        string,
        unknown
      >[];
      for (const row of rows) for (const column of RANDOM[table] ?? []) delete row[column];
      return [table, rows];
    }),
  );
}
