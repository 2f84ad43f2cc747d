import { describe, expect, it } from 'vitest';
import { call, listOf, post } from '../support/app/http-calls.ts';
import { useApp } from '../support/app/running-app.ts';

const app = useApp();
const COUNT = 1_000;
/** With this metadata, a thousand submissions take 4 MiB. */
const METADATA = { note: 'x'.repeat(4_000) };
/** The limit of a page, plus the fixed part of each submission, plus the last submission. */
const MAX_BYTES = 1024 * 1024 * 1.3;
const ids = Array.from({ length: COUNT }, (_, index) => `large-${String(index).padStart(4, '0')}`);

app.prepare(async () => {
  expect((await post(app.url, { submission_ids: ids, metadata: METADATA })).status).toBe(202);
});

describe('a list of large submissions', () => {
  it.each([
    ['newest first', '', ids.toReversed()],
    ['by the beginning of the id', '&prefix=large-', ids],
  ])('ends pages early without skipping any, %s', async (_, query, expected) => {
    const seen: string[] = [];
    let pages = 0;
    for (let cursor: string | null = ''; cursor !== null; pages++) {
      const response = await call(
        app.url,
        `/v1/submissions?limit=1000${query}${cursor && `&cursor=${cursor}`}`,
      );
      expect(response.text.length).toBeLessThan(MAX_BYTES);
      const page = listOf(response);
      seen.push(...page.submissions.map(({ submission_id }) => submission_id));
      cursor = page.next_cursor;
    }
    expect(seen).toEqual(expected);
    expect(pages).toBe(4);
  });
});
