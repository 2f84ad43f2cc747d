import { describe, expect, test } from 'vitest';
import { openSandbox } from './open-sandbox.ts';

const USER = { authorization: 'Bearer sandbox-user-token', 'content-type': 'application/json' };
const ADMIN = { authorization: 'Bearer sandbox-admin-token' };
const SECOND = 'name=User%202&email=user2%40example.com';
const RECORD = {
  id: expect.any(String),
  name: expect.any(String),
  email: expect.any(String),
  app_id: expect.any(Number),
  assigned_wallet: expect.stringMatching(/^0x[0-9a-f]+$/),
};

describe('one user', () => {
  test.each(['/users/get_user', '/user/get_user', '/v1/user/get_user'])(
    'is returned as a bare record at %s',
    async (path) => {
      const sandbox = await openSandbox();
      const response = await sandbox.get(`${path}?${SECOND}`, USER);
      expect(response.status).toBe(200);
      expect(await response.json()).toEqual({
        ...RECORD,
        name: 'User 2',
        email: 'user2@example.com',
        app_id: 101,
      });
    },
  );

  test('is wrapped if configured', async () => {
    const sandbox = await openSandbox({ wrapped: true });
    const response = await sandbox.get(`/users/get_user?${SECOND}`, USER);
    expect(await response.json()).toEqual({
      state: 'SUCCESS',
      message: expect.any(String),
      data: RECORD,
    });
  });

  test("is the token's own if the parameters are ignored", async () => {
    const sandbox = await openSandbox({ userParams: 'ignored' });
    expect(await (await sandbox.get(`/users/get_user?${SECOND}`, USER)).json()).toMatchObject({
      name: 'User 1',
    });
    expect(await (await sandbox.get('/users/get_user', ADMIN)).json()).toMatchObject({
      name: 'User 25',
    });
  });

  test('is unknown if name and email do not belong together: 404 in plain text, or 500', async () => {
    const path = '/users/get_user?name=User%201&email=user2%40example.com';
    const older = await (await openSandbox({ unknownStatus: 404 })).get(path, USER);
    expect([older.status, older.headers.get('content-type')]).toEqual([
      404,
      expect.stringContaining('text/plain'),
    ]);
    const newer = await (await openSandbox({ unknownStatus: 500 })).get(path, USER);
    expect([newer.status, await newer.json()]).toEqual([
      500,
      { state: 'ERROR', error: 'Record not found' },
    ]);
  });

  test.each([{}, { authorization: 'Bearer other' }, { authorization: 'Basic sandbox-user-token' }])(
    'is refused with 401 for %j',
    async (headers) => {
      const response = await (await openSandbox()).get(`/users/get_user?${SECOND}`, headers);
      expect([response.status, await response.text()]).toEqual([401, 'Unauthorized']);
    },
  );

  test('has more fields if the deployment has them', async () => {
    const sandbox = await openSandbox({ extraFields: true });
    const response = await sandbox.get(`/users/get_user?${SECOND}`, USER);
    expect(await response.json()).toEqual({
      ...RECORD,
      credit_balance: expect.stringMatching(/^\d{30,39}$/),
    });
  });
});

describe('the listing', () => {
  test.each([
    ['array', (users: unknown) => users],
    ['results', (users: unknown) => ({ results: users })],
    ['resultsOk', (users: unknown) => ({ results: { Ok: users } })],
    ['data', (users: unknown) => ({ state: 'SUCCESS', data: users })],
    ['dataOk', (users: unknown) => ({ data: { Ok: users } })],
  ] as const)('has the form %s', async (listingForm, form) => {
    const sandbox = await openSandbox({ listingForm });
    const response = await sandbox.get('/admin/get_all_users?limit=2', ADMIN);
    expect(await response.json()).toEqual(form([RECORD, RECORD]));
  });

  test('can be a database error with status 200', async () => {
    const sandbox = await openSandbox({ listingForm: 'dataErr' });
    const response = await sandbox.get('/admin/get_all_users?limit=2', ADMIN);
    expect([response.status, await response.json()]).toEqual([
      200,
      { data: { Err: expect.any(String) } },
    ]);
  });

  test.each(['', '?limit=', '?limit=-1', '?limit=ten'])(
    'is refused with 400 in plain text for %j',
    async (query) => {
      const response = await (await openSandbox()).get(`/admin/get_all_users${query}`, ADMIN);
      expect([response.status, response.headers.get('content-type')]).toEqual([
        400,
        expect.stringContaining('text/plain'),
      ]);
    },
  );

  test.each([USER, {}])('is refused with 401 without an admin token: %j', async (headers) => {
    const response = await (await openSandbox()).get('/admin/get_all_users?limit=2', headers);
    expect([response.status, await response.text()]).toEqual([401, 'Unauthorized']);
    expect(response.headers.get('content-type')).toContain('text/plain');
  });
});
