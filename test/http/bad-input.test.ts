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
  it.each<[string, unknown, string]>([
    ['an unknown field', { submission_id: id, submission: 1 }, '/'],
    ['a field in the wrong letter case', { submission_id: id, Upstream: 'default' }, '/'],
    [
      'an upstream that every object inherits',
      { submission_id: id, upstream: 'constructor' },
      '/upstream',
    ],
    [
      'a deadline on the 30th of February',
      { submission_id: id, deadline: '2100-02-30T00:00:00Z' },
      '/deadline',
    ],
    [
      'a deadline in the year 10000',
      { submission_id: id, deadline: '+010000-01-01T00:00:00Z' },
      '/deadline',
    ],
    [
      'a data_hash of 63 digits',
      { submission_id: id, data_hash: `0x${'a'.repeat(63)}` },
      '/data_hash',
    ],
    ['a data_hash without 0x', { submission_id: id, data_hash: 'a'.repeat(66) }, '/data_hash'],
    ['metadata that is a list', { submission_id: id, metadata: [] }, '/metadata'],
    [
      'metadata of 4,097 bytes in UTF-8',
      { submission_id: id, metadata: { a: 'é'.repeat(2_045) } },
      '/metadata',
    ],
    [
      'an infinite number in metadata',
      `{"submission_id":"${id}","metadata":{"a":[1e999]}}`,
      '/metadata',
    ],
    [
      'metadata of 2,030 levels',
      `{"submission_id":"${id}","metadata":{"a":${lists(2_029)}}}`,
      '/metadata',
    ],
  ])('%s', async (_, body, pointer) => {
    const response = await post(app.url, body);
    expect(response.status).toBe(400);
    expect(problemOf(response).errors?.map((error) => error.pointer)).toContain(pointer);
  });

  it.each<[string, string]>([
    ['additional characters after the document', `{"submission_id":"${id}"} x`],
    [
      'another prototype in the metadata',
      `{"submission_id":"${id}","metadata":{"__proto__":{"admin":true}}}`,
    ],
    ['Infinity by overflow', `{"submission_id":"${id}","unknown_grace_s":1e999}`],
    [
      'metadata 100,000 deep',
      `{"submission_id":"${id}","metadata":{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`,
    ],
    ['a body 100,000 deep', `${'['.repeat(100_000)}${']'.repeat(100_000)}`],
    ['ids 100,000 deep', `{"submission_ids":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
  ])('a body that is or has %s', async (_, body) => {
    const response = await post(app.url, body);
    expect(response.status).toBe(400);
    problemOf(response);
  });

  it.each<[string, string]>([
    ['a name of a million characters', `{"submission_id":"${id}","${'k'.repeat(1_000_000)}":1}`],
    [
      '100,000 unknown fields',
      `{${Array.from({ length: 100_000 }, (_, index) => `"k${index}":1`).join()}}`,
    ],
    ['a million invalid ids', `{"submission_ids":[${'1,'.repeat(1_000_000)}1]}`],
  ])('%s, without sending it all back', async (_, body) => {
    const response = await post(app.url, body);
    expect(response.status).toBe(400);
    problemOf(response);
    expect(response.text.length).toBeLessThan(2_000);
  });
});

describe('listing refuses', () => {
  it.each([
    'limit=1e3',
    'limit=0x10',
    'limit=%207',
    'limit=0',
    'limit=1001',
    'limit[]=1',
    'status=finalized,',
    'cursor=1',
    'prefix=%20a',
    `prefix=${'a'.repeat(129)}`,
    '__proto__=1',
    'limit=%zz',
  ])('?%s', async (query) => {
    const response = await call(app.url, `/v1/submissions?${query}`);
    expect(response.status).toBe(400);
    expect(problemOf(response).detail).toMatch(/^query\b/);
  });
});
