import { printable, printableJson, printableLines } from '../domain/text.ts';

export const MAX_LINE_BYTES = 16 * 1024;

/** What a line is shortened to, one after the other until it fits. */
const CUTS = [
  { chars: 2_000, items: 50 },
  { chars: 500, items: 20 },
  { chars: 100, items: 10 },
] as const;
type Cut = (typeof CUTS)[number];

/** A line of JSON as it is written: no longer than MAX_LINE_BYTES (what was cut says `"cut":true`), without what steers a terminal. */
export function toWrittenLine(line: string): string {
  const escaped = printableJson(line);
  if (fits(escaped)) return escaped;
  const { level, time, event, ...fields } = JSON.parse(line) as Record<string, unknown>;
  for (const cut of CUTS) {
    const kept = { level, time, ...shortenedFields(fields, cut), event, cut: true };
    const shorter = printableJson(`${JSON.stringify(kept)}\n`);
    if (fits(shorter)) return shorter;
  }
  return `${JSON.stringify({ level, time, event, cut: true })}\n`;
}

/** The same for a line that is shown to people: all of it is text there, so that nothing may be left to be decoded. */
export function toShownLine(line: string): string {
  const shown = (key: string, value: unknown) => {
    if (typeof value !== 'string') return value;
    return key === 'stack' ? printableLines(value) : printable(value, value.length);
  };
  return `${JSON.stringify(JSON.parse(toWrittenLine(line)), shown)}\n`;
}

function fits(line: string): boolean {
  return line.length * 3 <= MAX_LINE_BYTES || Buffer.byteLength(line) <= MAX_LINE_BYTES;
}

function shortened(value: unknown, cut: Cut): unknown {
  if (typeof value === 'string') return value.length > cut.chars ? `${value.slice(0, cut.chars)}…` : value;
  if (Array.isArray(value)) return value.slice(0, cut.items).map((item) => shortened(item, cut));
  return typeof value === 'object' && value !== null ? shortenedFields(value, cut) : value;
}

function shortenedFields(fields: object, cut: Cut): Record<string, unknown> {
  const kept = Object.entries(fields).slice(0, cut.items);
  return Object.fromEntries(kept.map(([name, value]) => [name.slice(0, cut.chars), shortened(value, cut)]));
}
