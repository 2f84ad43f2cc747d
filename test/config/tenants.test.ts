import { expect, it } from 'vitest';
import { configSchema } from '../../src/config/schema.ts';

const problemsOf = (tenants: unknown) =>
  configSchema.safeParse({ tenants }).error?.issues.map(({ message, path }) => `${path.join('.')}: ${message}`) ?? [];

it.each(['../x', '', 'x'.repeat(300), 'Acme', 'a b', '.', '-a', 'a/b', 'ä', 'a\n'])(
  'a tenant cannot be named %j',
  (name) => {
    expect(problemsOf({ [name]: {} })).toEqual([expect.stringMatching(/^tenants/)]);
  },
);

it('the name default is reserved', () => {
  expect(problemsOf({ default: {} })).toEqual([
    'tenants.default: must have another name: default is reserved for data without a tenant',
  ]);
});

it('a tenant without settings has no limits and the weight 1', () => {
  expect(configSchema.parse({ tenants: { acme: {}, 'b-2_c': { max_open: 5 } } }).tenants).toEqual({
    acme: { max_open: 0, requests_per_minute: 0, weight: 1 },
    'b-2_c': { max_open: 5, requests_per_minute: 0, weight: 1 },
  });
});

it.each([{ max_open: -1 }, { max_open: 1.5 }, { weight: 0 }, { requests_per_minute: '5' }, { quota: 5 }])(
  'the settings %j are refused',
  (settings) => {
    expect(problemsOf({ acme: settings }).length).toBe(1);
  },
);
