import { isObject, isTextTooDeep, parseJson } from './json.ts';
/**
 * A row of the ledger that holds what can't be shown: JSON that is none or is nested too deeply, a time that is none, a word that
 * nobody knows. `fields`: which of it; they are shown as null, or as the nearest value there is.
 */
export const ROW_KINDS = ['submission', 'event', 'delivery', 'webhook'] as const;
export type UnreadableRow = { kind: (typeof ROW_KINDS)[number]; id: string; fields: readonly string[] };
export type ReportUnreadable = (row: UnreadableRow) => void;

/** Returns a function that passes a shown row on, and reports it if it has unreadable fields. */
export function unreadableReporter(report: ReportUnreadable, kind: UnreadableRow['kind']) {
  return <T extends { unreadable?: readonly string[] | undefined }>(id: string, shown: T): T => {
    if (shown.unreadable) report({ kind, id, fields: shown.unreadable });
    return shown;
  };
}

/** The value of stored JSON; undefined if it is unreadable. */
export function readStored(text: string): { value: unknown } | undefined {
  if (isTextTooDeep(text)) return undefined;
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** A stored object, null where there is none; undefined if it is unreadable. */
export function readStoredObject(text: string | null): Record<string, unknown> | null | undefined {
  if (text === null) return null;
  const stored = readStored(text);
  return stored && isObject(stored.value) ? stored.value : undefined;
}

/** `data` of a stored answer, as it came, null where it has none; undefined if the answer is unreadable. */
export function readStoredData(answer: string | null): Record<string, unknown> | null | undefined {
  if (answer === null) return null;
  const envelope = parseJson(answer);
  if (envelope === undefined) return undefined;
  return isObject(envelope) && isObject(envelope.data) ? envelope.data : null;
}

/** The years 0000 to 9999, which ISO 8601 writes in four digits. */
const [FIRST_MS, LAST_MS] = [-62_167_219_200_000, 253_402_300_799_999];

export function isTime(ms: unknown): ms is number {
  return typeof ms === 'number' && ms >= FIRST_MS && ms <= LAST_MS;
}

/** The nearest time that can be written. */
export function nearestTime(ms: number): number {
  return Math.min(Math.max(ms, FIRST_MS), LAST_MS);
}
