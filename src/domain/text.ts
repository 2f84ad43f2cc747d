const DEFAULT_MAX_CHARS = 500;

/**
 * Text from outside, for a log line or a terminal: cut, and with control characters (C0 and C1) and those that turn the
 * direction of writing or are invisible escaped, so that it can't pose as anything else.
 */
export function escapeText(text: string, maxChars = DEFAULT_MAX_CHARS): string {
  const short = text.length > maxChars ? `${text.slice(0, maxChars)}…` : text;
  return short.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, escaped);
}

/** The same of a text of several lines that are meant as lines, uncut. */
export function escapeLines(text: string): string {
  return text
    .split('\n')
    .map((line) => escapeText(line, line.length))
    .join('\n');
}

/** JSON with the same characters escaped: those below U+0020 are already. It stays valid, and loses nothing. */
export function escapeJson(json: string): string {
  return json.replace(/[\u007f-\u009f\u2028\u2029]|\p{Cf}/gu, escaped);
}

function escaped(char: string): string {
  return Array.from({ length: char.length }, (_, at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, '0')}`).join(
    '',
  );
}
