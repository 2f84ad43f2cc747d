import { escapeText } from '../lib/text.ts';
import { truncate } from './truncate.ts';

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
