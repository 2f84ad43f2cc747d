const DEFAULT_MAX_CHARS = 500;

/** Text from outside, for a log line or a terminal: cut, and with control characters escaped, so that it can't pose as anything else. */
export function printable(text: string, maxChars = DEFAULT_MAX_CHARS): string {
  const short = text.length > maxChars ? `${text.slice(0, maxChars)}…` : text;
  return short.replace(
    /[\p{Cc}\p{Cf}\u2028\u2029]/gu,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
