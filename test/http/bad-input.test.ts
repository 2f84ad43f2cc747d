import { afterEach, describe, expect, it } from 'vitest';
import { call, listOf, post, problemOf } from '../support/app/http-calls.ts';
import { useApp } from '../support/app/running-app.ts';

const app = useApp();
const hours = (count: number) => new Date(Date.now() + count * 3_600_000).toISOString();
const id = 'a-good-id';
const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
const lists = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;

afterEach(async () => {
  const { submissions } = listOf(await call(app.url, '/v1/submissions'));
  expect(submissions, 'nothing was kept').toEqual([]);
});

describe('tracking refuses', () => {
  it.each<[string, unknown, string]>([
    ['no id', {}, '/'],
    ['both forms of ids', { submission_id: id, submission_ids: [id] }, '/'],
    ['an unknown field', { submission_id: id, submission: 1 }, '/'],
    ['a field in the wrong letter case', { submission_id: id, Upstream: 'default' }, '/'],
    ['an empty list', { submission_ids: [] }, '/submission_ids'],
    [
      '10,001 ids',
      { submission_ids: Array.from({ length: 10_001 }, (_, index) => `${index}`) },
      '/submission_ids',
    ],
    ['ids that are not a list', { submission_ids: id }, '/submission_ids'],
    ['ids that are an object', { submission_ids: { 0: id, length: 1 } }, '/submission_ids'],
    ['null for an id', { submission_id: null }, '/submission_id'],
    ['an unknown upstream', { submission_id: id, upstream: 'nowhere' }, '/upstream'],
    [
      'an upstream that every object inherits',
      { submission_id: id, upstream: 'constructor' },
      '/upstream',
    ],
    ['an upstream that is not text', { submission_id: id, upstream: ['default'] }, '/upstream'],
    ['an upstream of 33 characters', { submission_id: id, upstream: 'x'.repeat(33) }, '/upstream'],
    ['a deadline in the past', { submission_id: id, deadline: hours(-1) }, '/deadline'],
    ['a deadline 400 days away', { submission_id: id, deadline: hours(400 * 24) }, '/deadline'],
    ['a deadline in words', { submission_id: id, deadline: 'tomorrow' }, '/deadline'],
    [
      'a deadline without a zone',
      { submission_id: id, deadline: hours(1).slice(0, -1) },
      '/deadline',
    ],
    [
      'a deadline without a time',
      { submission_id: id, deadline: hours(24).slice(0, 10) },
      '/deadline',
    ],
    [
      'a deadline on the 30th of February',
      { submission_id: id, deadline: '2100-02-30T00:00:00Z' },
      '/deadline',
    ],
    ['a deadline as a number', { submission_id: id, deadline: Date.now() + 1e6 }, '/deadline'],
    [
      'a deadline in the year 10000',
      { submission_id: id, deadline: '+010000-01-01T00:00:00Z' },
      '/deadline',
    ],
    ['a negative grace period', { submission_id: id, unknown_grace_s: -1 }, '/unknown_grace_s'],
    ['a grace period in words', { submission_id: id, unknown_grace_s: '60' }, '/unknown_grace_s'],
    [
      'a grace period of 400 days',
      { submission_id: id, unknown_grace_s: 400 * 86_400 },
      '/unknown_grace_s',
    ],
    ['a stuck_after_s of null', { submission_id: id, stuck_after_s: null }, '/stuck_after_s'],
    ['metadata that is text', { submission_id: id, metadata: 'text' }, '/metadata'],
    ['metadata that is a list', { submission_id: id, metadata: [] }, '/metadata'],
    ['metadata that is null', { submission_id: id, metadata: null }, '/metadata'],
    [
      'metadata of 4,097 bytes',
      { submission_id: id, metadata: { a: 'x'.repeat(4_097 - 8) } },
      '/metadata',
    ],
    [
      'metadata of 4,097 bytes in UTF-8',
      { submission_id: id, metadata: { a: 'é'.repeat(2_045) } },
      '/metadata',
    ],
    ['metadata of 65 levels', `{"submission_id":"${id}","metadata":${nested(65)}}`, '/metadata'],
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
    ['a list', [{ submission_id: id }], '/'],
    ['null', 'null', '/'],
    ['a text', '"a-good-id"', '/'],
    ['a number', '1e999', '/'],
  ])('%s', async (_, body, pointer) => {
    const response = await post(app.url, body);
    expect(response.status).toBe(400);
    expect(problemOf(response).errors?.map((error) => error.pointer)).toContain(pointer);
  });

  it.each<[string, string]>([
    ['half of a document', `{"submission_id":"${id}"`],
    ['additional characters after the document', `{"submission_id":"${id}"} x`],
    ['another prototype', `{"submission_id":"${id}","__proto__":{"upstream":"default"}}`],
    [
      'another prototype in the metadata',
      `{"submission_id":"${id}","metadata":{"__proto__":{"admin":true}}}`,
    ],
    ['NaN', `{"submission_id":"${id}","unknown_grace_s":NaN}`],
    ['Infinity by overflow', `{"submission_id":"${id}","unknown_grace_s":1e999}`],
    [
      'metadata 100,000 deep',
      `{"submission_id":"${id}","metadata":{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`,
    ],
    ['a body 100,000 deep', `${'['.repeat(100_000)}${']'.repeat(100_000)}`],
    ['ids 100,000 deep', `{"submission_ids":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
    ['nothing', ''],
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

const BAD_NUMBERS = [
  '-1',
  '1e3',
  '10.5',
  'NaN',
  'Infinity',
  '',
  '0x10',
  '%207',
  '+5',
  '5,',
  '1000001',
  '１',
  'null',
];
const encoded = (value: string) => (value.includes('%') ? value : encodeURIComponent(value));

describe('listing refuses', () => {
  it.each([
    ...[...BAD_NUMBERS, '0', '1001'].map((value) => `limit=${encoded(value)}`),
    'limit=1&limit=2',
    'limit[]=1',
    'status=',
    'status=Finalized',
    'status=done',
    'status=finalized,done',
    'status=finalized&status=',
    'status=finalized,',
    'cursor=',
    'cursor=1',
    'cursor=null',
    `cursor=${'A'.repeat(65)}`,
    'prefix=',
    'prefix=%20a',
    `prefix=${'a'.repeat(129)}`,
    'prefix=a&prefix=b',
    'offset=10',
    '__proto__=1',
    'constructor=1',
    'limit=%zz',
  ])('?%s', async (query) => {
    const response = await call(app.url, `/v1/submissions?${query}`);
    expect(response.status).toBe(400);
    expect(problemOf(response).detail).toMatch(/^query\b/);
  });
});

describe('waiting refuses', () => {
  it.each([
    ...[...BAD_NUMBERS, '301'].map((value) => `timeout_s=${encoded(value)}`),
    'timeout_s=1&timeout_s=1',
    'timeout=1',
  ])('?%s', async (query) => {
    const response = await call(app.url, `/v1/submissions/${id}/wait?${query}`);
    expect(response.status).toBe(400);
    expect(problemOf(response).detail).toMatch(/^query\b/);
  });
});
