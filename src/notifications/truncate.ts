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
