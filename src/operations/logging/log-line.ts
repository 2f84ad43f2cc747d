import { escapeJson, escapeLines, escapeText } from '../../lib/text.ts';

export const MAX_LINE_BYTES = 16 * 1024;

/** Limits applied one after the other until a line fits. */
const LIMITS = [
  { chars: 2_000, items: 50 },
  { chars: 500, items: 20 },
  { chars: 100, items: 10 },
] as const;
type Limit = (typeof LIMITS)[number];

/**
 * Returns a line of JSON with control characters escaped and at most MAX_LINE_BYTES long. A
 * truncated line has `"cut":true`.
 */
export function toJsonLine(line: string): string {
  const escaped = escapeJson(line);
  if (fits(escaped)) return escaped;
  const { level, time, event, ...fields } = JSON.parse(line) as Record<string, unknown>;
  for (const limit of LIMITS) {
    const kept = { level, time, ...truncateFields(fields, limit), event, cut: true };
    const shorter = escapeJson(`${JSON.stringify(kept)}\n`);
    if (fits(shorter)) return shorter;
  }
  return `${JSON.stringify({ level, time, event, cut: true })}\n`;
}

/**
 * Like `toJsonLine`, for pino-pretty: escapes the decoded texts, because they are printed without
 * JSON escapes.
 */
export function toPrettyLine(line: string): string {
  const shown = (key: string, value: unknown) => {
    if (typeof value !== 'string') return value;
    return key === 'stack' ? escapeLines(value) : escapeText(value, value.length);
  };
  return `${JSON.stringify(JSON.parse(toJsonLine(line)), shown)}\n`;
}

function fits(line: string): boolean {
  return line.length * 3 <= MAX_LINE_BYTES || Buffer.byteLength(line) <= MAX_LINE_BYTES;
}

function truncateValue(value: unknown, limit: Limit): unknown {
  if (typeof value === 'string')
    return value.length > limit.chars ? `${value.slice(0, limit.chars)}…` : value;
  if (Array.isArray(value))
    return value.slice(0, limit.items).map((item) => truncateValue(item, limit));
  return typeof value === 'object' && value !== null ? truncateFields(value, limit) : value;
}

function truncateFields(fields: object, limit: Limit): Record<string, unknown> {
  const kept = Object.entries(fields).slice(0, limit.items);
  return Object.fromEntries(
    kept.map(([name, value]) => [name.slice(0, limit.chars), truncateValue(value, limit)]),
  );
}
