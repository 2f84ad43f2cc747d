import { expect, it } from 'vitest';
import { call, listOf, post, problemOf } from '../support/app/http-calls.ts';
import { useApp } from '../support/app/running-app.ts';

const app = useApp();
const list = async (query: string) => listOf(await call(app.url, `/v1/submissions?${query}`));

it('finds submissions by id prefix, page by page', async () => {
  const ids = ['order-3', 'order-1', 'other', 'order-2'];
  await post(app.url, { submission_ids: ids });
  const first = await list('prefix=order&limit=2');
  expect(first.submissions.map(({ submission_id }) => submission_id)).toEqual([
    'order-1',
    'order-2',
  ]);
  const second = await list(`prefix=order&limit=2&cursor=${first.next_cursor}`);
  expect(second.submissions.map(({ submission_id }) => submission_id)).toEqual(['order-3']);
  expect(second.next_cursor).toBeNull();
});

it('finds nothing for an unknown prefix', async () => {
  expect(await list('prefix=nobody')).toEqual({
    submissions: [],
    next_cursor: null,
    examined_to: null,
  });
});

it('pages through ids of every length', async () => {
  const ids = ['~'.repeat(128), `~${'!'.repeat(127)}`, '~'];
  await post(app.url, { submission_ids: ids });
  const seen: string[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page = await list(`prefix=~&limit=1${cursor && `&cursor=${cursor}`}`);
    seen.push(...page.submissions.map(({ submission_id }) => submission_id));
    cursor = page.next_cursor;
  }
  expect(seen).toEqual(ids.toSorted());
});

it.each([
  ['of the other list', 's1.7', 'prefix=a&'],
  ['of this list', 'i1.order-1', ''],
  ['without an id', 'i1.', 'prefix=a&'],
  ['with a space', 'i1.a b', 'prefix=a&'],
  ['with a letter that no id can contain', 'i1.é', 'prefix=a&'],
])('refuses a cursor %s', async (_, text, query) => {
  const cursor = Buffer.from(text).toString('base64url');
  const response = await call(app.url, `/v1/submissions?${query}cursor=${cursor}`);
  expect(problemOf(response).errors).toEqual([
    { pointer: 'cursor', detail: 'is not a cursor returned by this list' },
  ]);
});
