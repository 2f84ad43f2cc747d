import { escapeText } from '../lib/text.ts';
import { type AlertCondition, AlertRule } from './alert.ts';

/**
 * Escapes a text and truncates it to `maxChars` UTF-16 units, never inside a character or its
 * escape sequence.
 */
export function truncate(
  text: string,
  maxChars: number,
  escaped: (char: string) => string = (char) => char,
): string {
  let whole = '';
  let shortened = '';
  for (const char of text) {
    if (whole.length < maxChars) shortened = whole;
    whole += escaped(char);
    if (whole.length > maxChars) return `${shortened}…`;
  }
  return whole;
}

/** Returns an escape function for `truncate` that uses a table. */
export function escapeWith(table: Readonly<Record<string, string>>): (char: string) => string {
  return (char) => (Object.hasOwn(table, char) ? (table[char] as string) : char);
}

/** One line of a message. */
export type Line = {
  /** null: a value without a label. Never contains external text. */
  label: string | null;
  value: string;
};

const DEFAULT_MAX_CHARS = 300;
/** Replaces line breaks, so that external text cannot start a line of a message. */
const LINE_BREAK = ' ↵ ';

/**
 * Formats external text as one well-formed line of at most `maxChars`. Line breaks are replaced by
 * ↵; other control characters and bidirectional controls are escaped.
 */
export function toSingleLine(text: string, maxChars = DEFAULT_MAX_CHARS): string {
  const lines = text.slice(0, 2 * maxChars).split(/\r\n|[\n\v\f\r\u0085\u2028\u2029]/);
  const line = lines
    .map((each) => each.replaceAll('\t', ' ').trim())
    .filter((each) => each !== '')
    .join(LINE_BREAK);
  const cut = text.length > 2 * maxChars ? `${line}…` : line;
  return truncate(escapeText(cut, maxChars).toWellFormed(), maxChars);
}

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const;

/** Formats a duration with its two largest units: "850 ms", "12 s", "3 min 5 s", "2 d". */
export function durationText(ms: number): string {
  const durationMs = Math.max(0, ms);
  if (durationMs < 1_000) return `${Math.round(durationMs)} ms`;
  let restS = Math.floor(durationMs / 1_000);
  const largest = UNITS.findIndex(([, seconds]) => restS >= seconds);
  const parts: string[] = [];
  for (const [unit, seconds] of UNITS.slice(largest, largest + 2)) {
    const amount = Math.floor(restS / seconds);
    restS -= amount * seconds;
    if (amount > 0) parts.push(`${amount} ${unit}`);
  }
  return parts.join(' ');
}

/**
 * Returns the path of the dashboard page about an alert, relative to the base address of the
 * server.
 */
export function alertPath({ rule, subject }: Pick<AlertCondition, 'rule' | 'subject'>): string {
  if (rule === AlertRule.failures) return '#/submissions?status=failing';
  if (rule === AlertRule.backlog) return '#/deliveries?state=waiting';
  if (rule === AlertRule.deadLetters) return '#/deliveries?state=dead';
  if (rule === AlertRule.webhookDisabled)
    return `#/webhooks/${encoded(subject.replace(/^webhook:/, ''))}`;
  if (rule === AlertRule.errorBudget) return '#/reports';
  return OVERVIEW_PATH;
}

export function submissionPath(submissionId: string): string {
  return `#/submissions/${encoded(submissionId)}`;
}

export const OVERVIEW_PATH = '#/';

/**
 * Joins a path of the dashboard to `server.public_url`. The result contains no character that ends
 * a link in a message.
 */
export function linkTo(publicUrl: string, path: string): string {
  return `${publicUrl.replace(/\/+$/, '').replace(UNSAFE, percentEncoded)}/${path}`;
}

/**
 * Characters that end a link in the markup of a chat service, although encodeURIComponent or the
 * URL parser keeps them.
 */
const UNSAFE = /[!'()*|<>"[\]\s]/g;

function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(UNSAFE, percentEncoded);
}

function percentEncoded(char: string): string {
  return `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}
