/** A page ends early once its rows hold so many characters, so that it is built and sent quickly: an answer may be a megabyte. */
const MAX_PAGE_CHARS = 1024 * 1024;

/**
 * The first `limit` rows, or fewer where those are long, but one at least. `hasMore`: others follow, for which `rows` must
 * yield one more than `limit`.
 */
export function takePage<Row extends object>(
  rows: Iterable<unknown>,
  limit: number,
): { page: Row[]; hasMore: boolean } {
  const page: Row[] = [];
  let chars = 0;
  for (const row of rows as Iterable<Row>) {
    chars += charsOf(row);
    if (page.length === limit || (page.length > 0 && chars > MAX_PAGE_CHARS)) return { page, hasMore: true };
    page.push(row);
  }
  return { page, hasMore: false };
}

function charsOf(row: object): number {
  let chars = 0;
  for (const value of Object.values(row)) if (typeof value === 'string') chars += value.length;
  return chars;
}
