/** A text of at most `maxChars` UTF-16 units after escaping; it is never cut inside of a character or of its escape. */
export function truncate(text: string, maxChars: number, escaped: (char: string) => string = (char) => char): string {
  let whole = '';
  let shortened = '';
  for (const char of text) {
    if (whole.length < maxChars) shortened = whole;
    whole += escaped(char);
    if (whole.length > maxChars) return `${shortened}…`;
  }
  return whole;
}

/** Escapes by a table, for `fitted`. */
export function escapeWith(table: Readonly<Record<string, string>>): (char: string) => string {
  return (char) => (Object.hasOwn(table, char) ? (table[char] as string) : char);
}
