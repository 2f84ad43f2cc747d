import { escapeText } from '../../domain/text.ts';

/**
 * What begins so is a formula to a spreadsheet (DDE too); some read the wide forms of East Asian keyboards as the narrow ones,
 * and pass over spaces, quotes and what is invisible.
 */
const FORMULA = /^[\s\p{Cc}\p{Cf}"']*[=+\-@＝＋－＠]/u;
const NUMBER = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/;
/** A spreadsheet may begin a cell behind any of these, whatever the quotes say: where ; separates cells, a "," does not. */
const SEPARATOR = /([;\t\r\n])/;

/**
 * One line of RFC 4180. Where a spreadsheet could take text for a formula, at its beginning or behind a ; a tab or a line
 * break, it gets a quote mark; numbers stay as they are. `isTerminal`: people look at it, so nothing may steer their terminal.
 */
export function toCsvLine(
  cells: readonly (string | number | null)[],
  { isTerminal = false }: { isTerminal?: boolean } = {},
): string {
  return `${cells.map((cell) => toCell(cell, isTerminal)).join(',')}\r\n`;
}

function toCell(value: string | number | null, isTerminal: boolean): string {
  if (value === null) return '';
  const text = isTerminal ? escapeText(String(value), Number.POSITIVE_INFINITY) : String(value);
  // Some strip the first of these, and then look again.
  const start = /^[\t\r\n]/.test(text) ? "'" : '';
  const parts = text.split(SEPARATOR).map((part) => (isFormula(part) ? `'${part}` : part));
  const safe = `${start}${parts.join('')}`;
  return /[",;\t\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function isFormula(part: string): boolean {
  return FORMULA.test(part) && !NUMBER.test(part);
}
