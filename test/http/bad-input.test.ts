import { afterEach, describe, expect, it } from 'vitest';
import { call, listOf, post, problemOf } from '../support/app/http-calls.ts';
import { useApp } from '../support/app/running-app.ts';

const app = useApp();
const id = 'a-good-id';
const lists = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;

afterEach(async () => {
  const { submissions } = listOf(await call(app.url, '/v1/submissions'));
  expect(submissions, 'nothing was kept').toEqual([]);
});

describe('tracking refuses', () => {
  it.each<[string, object, string]>([
    ['a field in the wrong letter case', { Upstream: 'default' }, '/'],
    ['an upstream that every object inherits', { upstream: 'constructor' }, '/upstream'],
    ['a deadline on the 30th of February', { deadline: '2100-02-30T00:00:00Z' }, '/deadline'],
    ['a deadline in the year 10000', { deadline: '+010000-01-01T00:00:00Z' }, '/deadline'],
    ['a data_hash of 63 digits', { data_hash: `0x${'a'.repeat(63)}` }, '/data_hash'],
    ['a data_hash without 0x', { data_hash: 'a'.repeat(66) }, '/data_hash'],
    ['metadata that is a list', { metadata: [] }, '/metadata'],
    ['metadata of 4,097 bytes in UTF-8', { metadata: { a: 'é'.repeat(2_045) } }, '/metadata'],
  ])('%s', async (_, fields, pointer) => {
    const response = await post(app.url, { submission_id: id, ...fields });
    expect(response.status).toBe(400);
    expect(problemOf(response).errors?.map((error) => error.pointer)).toContain(pointer);
  });

  const unknown = Array.from({ length: 100_000 }, (_, index) => `"k${index}":1`).join();
  it.each<[string, string]>([
    ['an infinite number in metadata', `{"submission_id":"${id}","metadata":{"a":[1e999]}}`],
    ['metadata of 2,030 levels', `{"submission_id":"${id}","metadata":{"a":${lists(2_029)}}}`],
    ['metadata 100,000 deep', `{"submission_id":"${id}","metadata":{"a":${lists(100_000)}}}`],
    ['additional characters after the document', `{"submission_id":"${id}"} x`],
    ['another prototype', `{"submission_id":"${id}","metadata":{"__proto__":{"admin":true}}}`],
    ['Infinity by overflow', `{"submission_id":"${id}","unknown_grace_s":1e999}`],
    ['a body 100,000 deep', lists(100_000)],
    ['ids 100,000 deep', `{"submission_ids":${lists(100_000)}}`],
    ['a name of a million characters', `{"submission_id":"${id}","${'k'.repeat(1_000_000)}":1}`],
    ['100,000 unknown fields', `{${unknown}}`],
    ['a million invalid ids', `{"submission_ids":[${'1,'.repeat(1_000_000)}1]}`],
  ])('a body that is or has %s, without sending it all back', async (_, body) => {
    const response = await post(app.url, body);
    expect(response.status).toBe(400);
    problemOf(response);
    expect(response.text.length).toBeLessThan(2_000);
  });
});

describe('listing refuses', () => {
  it.each([
    ...['limit=1e3', 'limit=0x10', 'limit=%207', 'limit=0', 'limit=1001', 'limit[]=1', 'limit=%zz'],
    ...['status=finalized,', 'cursor=1', 'prefix=%20a', `prefix=${'a'.repeat(129)}`, '__proto__=1'],
  ])('?%s', async (query) => {
    const response = await call(app.url, `/v1/submissions?${query}`);
    expect(response.status).toBe(400);
    expect(problemOf(response).detail).toMatch(/^query\b/);
  });
});
