/** `[]` has one level; real documents have three or four. */
export const MAX_NESTING = 64;
export const DEEP_METADATA_REASON = `metadata may be nested at most ${MAX_NESTING} levels deep`;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Needs JSON. JSON.parse accepts any depth; JSON.stringify and recursion overflow. */
export function isTextTooDeep(text: string, most = MAX_NESTING): boolean {
  let depth = 0;
  let isString = false;
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charCodeAt(at);
    if (isString) {
      if (char === BACKSLASH) at += 1;
      else if (char === QUOTE) isString = false;
    } else if (char === QUOTE) isString = true;
    // "[" and "{" differ only in this bit, and so do "]" and "}".
    else if ((char | 0x20) === 0x7b) {
      depth += 1;
      if (depth > most) return true;
    } else if ((char | 0x20) === 0x7d) depth -= 1;
  }
  return false;
}

/** Like isTextTooDeep for a value. One that contains itself is too deep. */
export function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value].filter(isContainer);
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > MAX_NESTING) return true;
    level = level.flatMap((container) => Object.values(container as object).filter(isContainer));
  }
  return false;
}

/** JSON.parse reads 1e999 as Infinity. The value has at most MAX_NESTING levels. */
export function hasFiniteNumbers(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  return !isContainer(value) || Object.values(value as object).every(hasFiniteNumbers);
}

/** The server refuses the name __proto__. The value has at most MAX_NESTING levels. */
export function hasPrototypeName(value: unknown): boolean {
  if (!isContainer(value)) return false;
  return (
    Object.hasOwn(value as object, '__proto__') ||
    Object.values(value as object).some(hasPrototypeName)
  );
}

function isContainer(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

/** Shorter integers are exact. Digits within a string need no reviver. */
const LONG_INTEGER = /(?:^|[:,[\s])-?\d{16}/;

/** Integers that are too large become strings. Returns undefined if not JSON, or too deep. */
export function parseJson(text: string): unknown {
  if (isTextTooDeep(text)) return undefined;
  // A reviver takes five to seven times as long: 0.7 s for the longest listing of users.
  return tryParse(text, LONG_INTEGER.test(text) ? keepLongIntegers : undefined);
}

/** JSON.parse, but returns undefined for a text that is not JSON. */
export function tryParse(text: string, reviver?: typeof keepLongIntegers): unknown {
  try {
    return JSON.parse(text, reviver);
  } catch {
    return undefined;
  }
}

function keepLongIntegers(_key: string, value: unknown, context?: { source?: string }): unknown {
  const inexact = typeof value === 'number' && !Number.isSafeInteger(value);
  return inexact && context?.source && /^-?\d+$/.test(context.source) ? context.source : value;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The order of keys has no meaning. Both have at most MAX_NESTING levels. */
export function isSameJson(a: unknown, b: unknown): boolean {
  if (!isContainer(a) || !isContainer(b)) return a === b;
  const [one, other] = [a, b] as [Record<string, unknown>, Record<string, unknown>];
  const keys = Object.keys(one);
  if (Array.isArray(a) !== Array.isArray(b) || keys.length !== Object.keys(other).length)
    return false;
  return keys.every((key) => Object.hasOwn(other, key) && isSameJson(one[key], other[key]));
}

/** A stored value that dawatch never writes. `dawatch doctor --full` finds such rows. */
export class DamagedRowError extends Error {
  override readonly name = 'DamagedRowError';

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
  const value = tryParse(text);
  if (value === undefined) throw new DamagedRowError(row, column);
  return value;
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

/** The years 0000 to 9999, which have four digits in ISO 8601. */
const [FIRST_MS, LAST_MS] = [-62_167_219_200_000, 253_402_300_799_999];

function isTime(ms: unknown): ms is number {
  return typeof ms === 'number' && ms >= FIRST_MS && ms <= LAST_MS;
}

export function nearestTime(ms: number): number {
  return Math.min(Math.max(ms, FIRST_MS), LAST_MS);
}
