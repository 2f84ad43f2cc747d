import { describe, expect, it } from 'vitest';
import { foundSchema } from '../../src/submissions/search-route.ts';
import { call, listOf, pathOf, post, problemOf } from '../support/app/http-calls.ts';
import { useApp } from '../support/app/running-app.ts';
import { rawConnection } from '../support/ledger/ledger-file.ts';

const app = useApp();
const growing = useApp();
const BEFORE = '2000-01-01T00:00:00Z';
const AFTER = '2100-01-01T00:00:00Z';
const idsOf = ({ submissions }: { submissions: { submission_id: string }[] }) =>
  submissions.map(({ submission_id }) => submission_id);
const list = async (query: string) =>
  idsOf(listOf(await call(app.url, `/v1/submissions?${query}`)));
const count = async (query: string) =>
  JSON.parse((await call(app.url, `/v1/submission_count?${query}`)).text);
const cancel = (id: string) => call(app.url, pathOf(id), { method: 'DELETE' });

app.prepare(async () => {
  await post(app.url, { submission_ids: ['a1', 'a2'], metadata: { order: 4711, shop: 'berlin' } });
  await post(app.url, { submission_ids: ['b1'], metadata: { order: '4711', shop: 'a=b & c' } });
  await post(app.url, { submission_ids: ['b2'], metadata: { order: 12 }, upstream: 'other' });
  await cancel('a1');
  await cancel('b2');
});

it('lists newest first, page by page, each submission once, also while new ones arrive', async () => {
  const ids = Array.from({ length: 25 }, (_, index) => `page-${index}`);
  await post(growing.url, { submission_ids: ids });
  for (const id of ids) await call(growing.url, pathOf(id), { method: 'DELETE' });
  const seen: string[] = [];
  let cursor: string | null = null;
  let pages = 0;
  do {
    const after: string = cursor === null ? '' : `&cursor=${cursor}`;
    const page = listOf(
      await call(growing.url, `/v1/submissions?status=cancelled&limit=10${after}`),
    );
    expect(page.submissions.length).toBeLessThanOrEqual(10);
    seen.push(...page.submissions.map(({ submission_id }) => submission_id));
    cursor = page.next_cursor;
    pages += 1;
    await post(growing.url, { submission_id: `newcomer-${pages}` });
  } while (cursor !== null);
  expect(seen.filter((id) => id.startsWith('page-'))).toEqual(ids.toReversed());
  expect(new Set(seen).size).toBe(seen.length);
  expect(
    listOf(await call(growing.url, '/v1/submissions?limit=1')).submissions[0]?.submission_id,
  ).toBe(`newcomer-${pages}`);
});

describe('a list', () => {
  it.each([
    ['status=tracking,cancelled', ['b2', 'b1', 'a2', 'a1']],
    ['status=cancelled&status=expired', ['b2', 'a1']],
    ['upstream=other', ['b2']],
    ['metadata.order=4711', ['b1', 'a2', 'a1']],
    ['metadata.order=4711&metadata.shop=berlin', ['a2', 'a1']],
    [`metadata.shop=${encodeURIComponent('a=b & c')}`, ['b1']],
    [`metadata=${encodeURIComponent('{"order":4711,"shop":"berlin"}')}`, ['a2', 'a1']],
    ['metadata.order=47', []],
    [`tracked_since=${BEFORE}&tracked_until=${AFTER}`, ['b2', 'b1', 'a2', 'a1']],
    [`tracked_since=${AFTER}`, []],
    [`ended_since=${BEFORE}`, ['b2', 'a1']],
    [`ended_until=${BEFORE}`, []],
    ['prefix=b&status=tracking', ['b1']],
    [
      `prefix=a&metadata.order=4711&status=cancelled&upstream=default&ended_since=${BEFORE}&tracked_since=${BEFORE}`,
      ['a1'],
    ],
  ])('of ?%s', async (query, expected) => {
    expect(await list(query)).toEqual(expected);
    expect(await count(query)).toEqual({ count: expected.length, next_cursor: null });
  });

  it.each([
    'status=tracking,cancelled',
    'prefix=',
    `tracked_since=${BEFORE}`,
    `ended_since=${BEFORE}`,
    'metadata.order=4711',
  ])('of ?%s continues at its cursor', async (given) => {
    const query = given === 'prefix=' ? 'prefix=b' : given;
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page = listOf(
        await call(app.url, `/v1/submissions?${query}&limit=1${cursor && `&cursor=${cursor}`}`),
      );
      seen.push(...idsOf(page));
      cursor = page.next_cursor;
    }
    expect(seen).toEqual(await list(query));
    expect(seen.length).toBeGreaterThan(1);
  });

  it('of those that are reported as stuck contains no ended ones', async () => {
    const reported = "UPDATE submissions SET stuck = 1 WHERE submission_id LIKE 'a%'";
    rawConnection(app.database).exec(reported);
    expect(await list('stuck=true')).toEqual(['a2']);
  });

  const cursor = (text: string) => `cursor=${Buffer.from(text).toString('base64url')}`;
  const eleven = Array.from({ length: 11 }, (_, i) => `metadata.k${i}=1`).join('&');
  it.each([
    ['an unknown status', 'status=pending,done', 'status'],
    ['an unknown upstream', 'upstream=nowhere', 'upstream'],
    ['those that are not stuck', 'stuck=false', 'stuck'],
    ['metadata that is no object', 'metadata=[1]', 'metadata'],
    ['metadata that is not JSON', 'metadata=order', 'metadata'],
    ['metadata with a long name', `metadata.${'n'.repeat(129)}=x`, 'metadata'],
    ['metadata in both forms', 'metadata={}&metadata.a=2', 'metadata'],
    ['eleven values of metadata', eleven, 'metadata'],
    ['a time without a zone', 'tracked_since=2026-01-02T03:04:05', 'tracked_since'],
    ['an empty range', `tracked_since=${AFTER}&tracked_until=${BEFORE}`, 'tracked_until'],
    ['the cursor of another order', `ended_since=${BEFORE}&${cursor('["tracked",5,7]')}`, 'cursor'],
    ['a cursor by time in the plain list', cursor('["tracked",5,7]'), 'cursor'],
    [
      'a cursor with another type',
      `tracked_since=${BEFORE}&${cursor('["tracked","5",7]')}`,
      'cursor',
    ],
    [
      'another spelling of a cursor',
      `tracked_since=${BEFORE}&${cursor('["tracked", 5,7]')}`,
      'cursor',
    ],
  ])('refuses %s, and so does a count', async (_, query, pointer) => {
    for (const path of ['/v1/submissions', '/v1/submission_count']) {
      const response = await call(app.url, `${path}?${encodeURI(query)}`);
      expect(response.status).toBe(400);
      expect(problemOf(response).errors?.map((error) => error.pointer)).toEqual([pointer]);
    }
  });
});

it('a name of metadata that objects inherit is an ordinary one', async () => {
  for (const name of ['__proto__', 'constructor', 'toString'])
    expect(await list(`metadata.${name}=x`)).toEqual([]);
});

describe('a lookup', () => {
  const lookup = (body: unknown) =>
    call(app.url, '/v1/submissions/lookup', { method: 'POST', body });

  it('returns found and unknown ids apart, each once', async () => {
    const { status, text } = await lookup({ submission_ids: ['b1', 'never', 'a1', 'b1'] });
    expect(status).toBe(200);
    const found = foundSchema.strict().parse(JSON.parse(text));
    expect(found).toMatchObject({
      submissions: [{ submission_id: 'b1' }, { status: 'cancelled' }],
      not_found: ['never'],
    });
    expect(found.remaining).toEqual([]);
  });

  it('compares UUIDs in any case, and accepts a thousand ids', async () => {
    const upper = '6DF2C1CE-B11A-4828-B2A6-62BF5B7CB325';
    await post(app.url, { submission_id: upper });
    const others = Array.from({ length: 998 }, (_, index) => `${'x'.repeat(120)}${index}`);
    const { text } = await lookup({ submission_ids: [upper, upper.toLowerCase(), ...others] });
    const found = foundSchema.parse(JSON.parse(text));
    expect(found.submissions).toMatchObject([{ submission_id: upper.toLowerCase() }]);
    expect(found.not_found).toEqual(others);
  });

  it.each([
    ['no ids', {}, '/submission_ids'],
    [
      '1,001 ids',
      { submission_ids: Array.from({ length: 1_001 }, (_, index) => `${index}`) },
      '/submission_ids',
    ],
    ['an id with a space', { submission_ids: ['a', 'b c'] }, '/submission_ids/1'],
    ['another field', { submission_ids: ['a'], limit: 1 }, '/'],
  ])('refuses %s', async (_, body, pointer) => {
    const response = await lookup(body);
    expect(response.status).toBe(400);
    expect(problemOf(response).errors?.map((error) => error.pointer)).toContain(pointer);
  });
});
