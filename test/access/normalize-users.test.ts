import { describe, expect, it } from 'vitest';
import { normalizeUser, normalizeUsers } from '../../src/access/users.ts';

const RECORD = {
  id: '1',
  name: 'Ada',
  email: 'ada@example.com',
  app_id: 7,
  assigned_wallet: '0xab',
};
const user = (body: unknown) =>
  normalizeUser(typeof body === 'string' ? body : JSON.stringify(body));
const users = (body: unknown, limit = 10) =>
  normalizeUsers(typeof body === 'string' ? body : JSON.stringify(body), limit);
const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;

describe('finds one user', () => {
  it.each<[string, object]>([
    ['fewer fields', { id: '1' }],
    [
      'more fields',
      { ...RECORD, credit_balance: '9'.repeat(39), state: 'Texas', data: 'x', error: 'x', Ok: 1 },
    ],
    ['null for missing values', { ...RECORD, app_id: null, assigned_wallet: null }],
    ['a field with the name of a wrapper', { ...RECORD, results: [1], data: { a: 1 } }],
    ['a negative number', { ...RECORD, app_id: -7 }],
  ])('with %s, unchanged', (_, record) => {
    expect(user(record)).toEqual({ kind: 'found', value: record });
    expect(user({ state: 'SUCCESS', message: '', data: record })).toEqual({
      kind: 'found',
      value: record,
    });
    expect(users([record])).toEqual({ kind: 'found', value: [record] });
  });
});

it.each([
  ['results', (list: object[]) => ({ results: list })],
  ['results in Ok', (list: object[]) => ({ results: { Ok: list } })],
  ['data', (list: object[]) => ({ state: 'SUCCESS', data: list })],
  ['data in Ok', (list: object[]) => ({ data: { Ok: list } })],
])('finds a list in the form %s', (_, wrap) => {
  expect(users(wrap([RECORD]))).toEqual({ kind: 'found', value: [RECORD] });
});

describe('rejects', () => {
  const WRONG = [
    { id: 1 },
    { name: ['Ada'] },
    { email: {} },
    { app_id: '7' },
    { app_id: 7.5 },
    { app_id: true },
    { assigned_wallet: 1 },
  ];
  it.each(WRONG)('a record with %j', (wrong) => {
    expect(user({ ...RECORD, ...wrong })).toMatchObject({ kind: 'malformed' });
    expect(users([RECORD, { ...RECORD, ...wrong }])).toMatchObject({ kind: 'malformed' });
  });

  it.each<[string, unknown]>([
    ['nothing', ''],
    ['half a document', '{"id":"1"'],
    ['a page', '<!doctype html>'],
    ['an object without a field of a user', {}],
    ['an error', { state: 'ERROR', error: 'Database connection error' }],
    ['an error beside data', { error: { code: 1 }, data: RECORD }],
    ['Err', { Err: 'x' }],
    ['Err in data', { data: { Err: 'Database connection error' } }],
    ['null data', { state: 'SUCCESS', data: null }],
    ['endless wrappings', `${'{"data":'.repeat(100_000)}1${'}'.repeat(100_000)}`],
    ['endless nesting in a record', `{"id":"1","more":${deep(200_000)}}`],
  ])('%s', (_, body) => {
    expect(user(body)).toMatchObject({ kind: 'malformed' });
    expect(users(body)).toMatchObject({ kind: 'malformed' });
  });

  it('an invalid field by its name, without its value', () => {
    expect(user({ ...RECORD, email: 7_777_777 })).toEqual({
      kind: 'malformed',
      detail: 'a user whose email is of another type',
    });
  });
});

it('"Record not found" with HTTP 200 as a missing user', () => {
  expect(user({ state: 'ERROR', error: 'Record not found' })).toEqual({ kind: 'not_found' });
});
