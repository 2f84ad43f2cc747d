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

/**
 * Time for slow rows. A page may use it up several times: it gathers rows, walks an index, and
 * reads what it found.
 */
const MAX_SLOW_MS = 5;
/** A row in memory takes 5 to 20 microseconds. */
const SLOW_ROW_MS = 0.1;
/** Fewer slow rows have another cause: the process had no core, or collected garbage. */
const MIN_SLOW_ROWS = 10;
const MIN_SLOW_SHARE = 1 / 50;
/**
 * Slow rows count in groups of this many, so that many rows in memory before them do not defer the
 * end.
 */
const GROUP_ROWS = 500;

/**
 * Ends a part of a page whose rows the system reads from the disk: each takes a hundred times as
 * long as a row in memory, and the event loop waits. Rows in memory end nothing. Rows that were
 * read stay in memory, so the following pages are longer.
 */
export class ReadLimit {
  #rowAt = performance.now();
  #rows = 0;
  #slowRows = 0;
  #slowMs = 0;

  /** Must be called after each row. Returns whether the page must end. */
  isReached(): boolean {
    const now = performance.now();
    const tookMs = now - this.#rowAt;
    this.#rowAt = now;
    if (this.#rows === GROUP_ROWS) this.#rows = this.#slowRows = this.#slowMs = 0;
    this.#rows += 1;
    if (tookMs > SLOW_ROW_MS) {
      this.#slowRows += 1;
      this.#slowMs += tookMs;
    }
    return (
      this.#slowMs > MAX_SLOW_MS &&
      this.#slowRows >= Math.max(MIN_SLOW_ROWS, this.#rows * MIN_SLOW_SHARE)
    );
  }
}
