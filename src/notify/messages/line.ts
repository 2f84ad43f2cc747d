import { escapeText } from '../../domain/text.ts';
import { truncate } from './truncate.ts';

/** One line of a message. */
export type Line = {
  /** null: the value stands alone. Never from outside. */
  label: string | null;
  value: string;
};

const DEFAULT_MAX_CHARS = 300;
/** Stands for a line break: no text from outside begins a line of its own, in no channel. */
const LINE_BREAK = ' ↵ ';

/**
 * Text from outside as one well-formed line that people can read: line breaks are shown as a sign, other control characters
 * and what turns the direction of writing are spelt out.
 */
export function toSingleLine(text: string, maxChars = DEFAULT_MAX_CHARS): string {
  // No more than may be shown: most of a long text is cut anyway.
  const lines = text.slice(0, 2 * maxChars).split(/\r\n|[\n\v\f\r\u0085\u2028\u2029]/);
  const line = lines
    .map((each) => each.replaceAll('\t', ' ').trim())
    .filter((each) => each !== '')
    .join(LINE_BREAK);
  const cut = text.length > 2 * maxChars ? `${line}…` : line;
  return truncate(escapeText(cut, maxChars).toWellFormed(), maxChars);
}
