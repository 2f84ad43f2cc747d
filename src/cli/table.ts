import { stripVTControlCharacters } from 'node:util';
import { escapeText } from '../lib/text.ts';
import { coloured } from './colors.ts';

/**
 * Returns rows with aligned columns. Escape sequences for colours do not count; lines have no
 * trailing spaces.
 */
export function table(rows: readonly (readonly string[])[]): string {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => widthOf(row[column] ?? ''))),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - widthOf(cell)))
      .join('  ')
      .trimEnd();
  return rows.map((row) => `${line(row)}\n`).join('');
}

/**
 * Returns a line per fact that is known. The state is coloured; other values are escaped and
 * truncated.
 */
export function factTable(
  facts: readonly (readonly [name: string, value: string | null])[],
  maxChars?: number,
): string {
  const known = facts.filter((fact): fact is readonly [string, string] => fact[1] !== null);
  return table(
    known.map(([name, value]) => [
      name,
      name === 'state' ? coloured(value) : escapeText(value, maxChars),
    ]),
  );
}

/** Returns "1 request", "2 requests". */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function widthOf(cell: string): number {
  return stripVTControlCharacters(cell).length;
}
