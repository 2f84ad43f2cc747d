import { escapeText } from './text.ts';

/**
 * The beginning of text that spreadsheets treat as a formula (including DDE). Some spreadsheets
 * also accept full-width characters and ignore spaces, quotes and invisible characters.
 */
const FORMULA = /^[\s\p{Cc}\p{Cf}"']*[=+\-@＝＋－＠]/u;
const NUMBER = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/;
/** Spreadsheets round a number of more digits. */
const EXACT_DIGITS = 15;
/**
 * Characters at which a spreadsheet may start a new cell even within quotes, for example where ; is
 * the separator.
 */
const SEPARATOR = /([;\t\r\n])/;

/**
 * Returns a line of CSV (RFC 4180). Text that a spreadsheet could treat as a formula, or would
 * change as a number, is prefixed with a quote mark; other numbers are not. `isTerminal`: also
 * escapes control characters.
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
  if (typeof value === 'string' && NUMBER.test(text.trim()) && isInexact(text.trim()))
    return `'${text}`;
  // Some spreadsheets strip a leading separator before they look for a formula.
  const start = /^[\t\r\n]/.test(text) ? "'" : '';
  const parts = text.split(SEPARATOR).map((part) => (isFormula(part) ? `'${part}` : part));
  const safe = `${start}${parts.join('')}`;
  return /[",;\t\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Whether a spreadsheet would show another text: rounded, without its first zeros, or as 1E+05. */
function isInexact(text: string): boolean {
  return text.replace(/\D/g, '').length > EXACT_DIGITS || /^-?0\d|e/i.test(text);
}

function isFormula(part: string): boolean {
  return FORMULA.test(part) && !NUMBER.test(part);
}
