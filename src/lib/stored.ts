import { isObject, parseJson } from './json.ts';

/**
 * A row of the ledger has a value that dawatch never writes: another program changed the file, or
 * the disk damaged it. `dawatch doctor --full` finds such rows.
 */
export class DamagedRowError extends Error {
  override readonly name = 'DamagedRowError';

  /** `row`: the table, and the id of the row. */
  constructor(row: string, column: string) {
    super(
      `${row} is damaged: its ${column} cannot be read. Run \`dawatch doctor --full\`, and restore a backup`,
    );
  }
}

/** Returns a stored object; null if there is none. Throws DamagedRowError. */
export function storedObject(
  text: string | null,
  row: string,
  column: string,
): Record<string, unknown> | null {
  if (text === null) return null;
  const value = parseStored(text, row, column);
  if (!isObject(value)) throw new DamagedRowError(row, column);
  return value;
}

/** Returns the value of stored JSON. Throws DamagedRowError. */
export function parseStored(text: string, row: string, column: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new DamagedRowError(row, column);
  }
}

/** Returns the value if it is one of these. Throws DamagedRowError. */
export function storedOneOf<T extends string>(
  values: readonly T[],
  value: string,
  row: string,
  column: string,
): T {
  if (!values.includes(value as T)) throw new DamagedRowError(row, column);
  return value as T;
}

/** Returns the time if its year has four digits in ISO 8601. Throws DamagedRowError. */
export function storedTime(ms: number, row: string, column: string): number {
  if (!isTime(ms)) throw new DamagedRowError(row, column);
  return ms;
}

/**
 * Returns the unchanged `data` of a stored envelope; null if it has none. Throws DamagedRowError.
 */
export function storedData(envelope: string | null, row: string): Record<string, unknown> | null {
  if (envelope === null) return null;
  const body = parseJson(envelope);
  if (body === undefined) throw new DamagedRowError(row, 'response');
  return isObject(body) && isObject(body.data) ? body.data : null;
}

/** The years 0000 to 9999, which have four digits in ISO 8601. */
const [FIRST_MS, LAST_MS] = [-62_167_219_200_000, 253_402_300_799_999];

export function isTime(ms: unknown): ms is number {
  return typeof ms === 'number' && ms >= FIRST_MS && ms <= LAST_MS;
}

/** Returns the nearest time with a four-digit year. */
export function nearestTime(ms: number): number {
  return Math.min(Math.max(ms, FIRST_MS), LAST_MS);
}
