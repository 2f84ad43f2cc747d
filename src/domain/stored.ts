import { isObject, isTextTooDeep, MAX_NESTING, parseJson } from './json.ts';
export const ROW_KINDS = ['submission', 'event', 'delivery', 'webhook'] as const;

/**
 * A row of the ledger with unreadable fields: malformed or too deeply nested JSON, an invalid time, an unknown name. They are
 * shown as null, or as the nearest valid value.
 */
export type UnreadableRow = { kind: (typeof ROW_KINDS)[number]; id: string; fields: readonly string[] };
export type ReportUnreadable = (row: UnreadableRow) => void;

/** Returns a function that returns its row unchanged, and reports it if it has unreadable fields. */
export function unreadableReporter(report: ReportUnreadable, kind: UnreadableRow['kind']) {
  return <T extends { unreadable?: readonly string[] | undefined }>(id: string, shown: T): T => {
    if (shown.unreadable) report({ kind, id, fields: shown.unreadable });
    return shown;
  };
}

/** Returns the value of stored JSON; undefined if it is unreadable or nested deeper than `levels`. */
export function readStored(text: string, levels = MAX_NESTING): { value: unknown } | undefined {
  if (isTextTooDeep(text, levels)) return undefined;
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** Returns a stored object; null if there is none; undefined if it is unreadable. */
export function readStoredObject(text: string | null): Record<string, unknown> | null | undefined {
  if (text === null) return null;
  const stored = readStored(text);
  return stored && isObject(stored.value) ? stored.value : undefined;
}

/** Returns the unchanged `data` of a stored envelope; null if it has none; undefined if the envelope is unreadable. */
export function readStoredData(envelope: string | null): Record<string, unknown> | null | undefined {
  if (envelope === null) return null;
  const body = parseJson(envelope);
  if (body === undefined) return undefined;
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
