const DEFAULT_MAX_CHARS = 500;

/**
 * Truncates and escapes text from outside for a log line or a terminal. Escapes control characters
 * (C0 and C1), characters that change the writing direction, and invisible ones.
 */
export function escapeText(text: string, maxChars = DEFAULT_MAX_CHARS): string {
  const short = text.length > maxChars ? `${text.slice(0, maxChars)}…` : text;
  return short.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, escaped);
}

/** Like escapeText for a text of several lines, without truncation. */
export function escapeLines(text: string): string {
  return text
    .split('\n')
    .map((line) => escapeText(line, line.length))
    .join('\n');
}

/**
 * Escapes the same characters in JSON, where those below U+0020 are escaped already. The value is
 * unchanged.
 */
export function escapeJson(json: string): string {
  return json.replace(/[\u007f-\u009f\u2028\u2029]|\p{Cf}/gu, escaped);
}

function escaped(char: string): string {
  return Array.from(
    { length: char.length },
    (_, at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('');
}
