/**
 * A page ends early once it holds this much text, because a stored response of an upstream may be a
 * megabyte.
 */
const MAX_PAGE_CHARS = 1024 * 1024;

/**
 * Returns the first `limit` rows; fewer if they are long, but at least one. `hasMore`: whether
 * further rows follow. To decide that, `rows` must yield one row more than `limit`.
 */
export function takePage<Row extends object>(
  rows: Iterable<Row>,
  limit: number,
): { page: Row[]; hasMore: boolean } {
  const page: Row[] = [];
  let chars = 0;
  for (const row of rows) {
    chars += charsOf(row);
    if (page.length === limit || (page.length > 0 && chars > MAX_PAGE_CHARS))
      return { page, hasMore: true };
    page.push(row);
  }
  return { page, hasMore: false };
}

function charsOf(row: object): number {
  let chars = 0;
  for (const value of Object.values(row)) if (typeof value === 'string') chars += value.length;
  return chars;
}
