import { printable } from '../monitor/printable.ts';
import { fitted } from './fitted.ts';

/** One line of a message. */
export type Line = {
  /** null: the value stands alone. Never from outside. */
  label: string | null;
  value: string;
};

const DEFAULT_MAX_CHARS = 300;

/** Text from outside as one well-formed line: control characters and what turns the direction of writing are spelt out. */
export function shown(text: string, maxChars = DEFAULT_MAX_CHARS): string {
  return fitted(printable(text, maxChars).toWellFormed(), maxChars);
}
