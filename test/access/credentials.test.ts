import { describe, expect, it } from 'vitest';
import { readEvents } from '../support/app/event-reader.ts';
import { call, type HttpResponse, problemOf } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { appForTest, openApp, useApp } from '../support/app/running-app.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { eventually } from '../support/until.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

const HEARTBEAT_MS = 15_000;
const HOUR_MS = 3_600_000;

/** The real clock, set forward by the tests. */
class AheadClock extends HeldClock {
  aheadMs = 0;
  override now(): number {
    return super.now() + this.aheadMs;
  }
}

/** Names that a reader takes for one that the audit uses itself. */
const LOOKALIKES = [
  ['a Cyrillic letter', 'd\u0430watch'],
  ['a space that does not break', 'dawatch\u00a0'],
  ['a full-width letter', '\uff24AWATCH_ADMIN_TOKEN'],
  ['a combining mark', 'dawatc\u0323h'],
  ['a small capital', 'd\u1d00watch'],
] as const;

type Credential = {
  id: number;
  secret: string;
  state: string;
};

const clock = new AheadClock(HEARTBEAT_MS);
const app = useApp({ adminToken: ADMIN_TOKEN, clock });
const as = (url: string, token: string, method: string, path: string, body?: unknown) =>
  call(url, path, {
    method,
    headers: { 'x-api-key': [], authorization: `Bearer ${token}` },
    ...(body !== undefined && { body }),
  });
const send = (method: string, path: string, body?: unknown) =>
  as(app.url, ADMIN_TOKEN, method, path, body);
const bodyOf = ({ text }: HttpResponse) => JSON.parse(text);
const create = async (fields: object): Promise<Credential> => {
  const response = await send('POST', '/v1/credentials', { name: 'billing', ...fields });
  expect(response.status, response.text).toBe(201);
  return bodyOf(response);
};
const shown = async (id: number): Promise<Credential | undefined> =>
  bodyOf(await send('GET', '/v1/credentials?limit=1000')).credentials.find(
    (one: Credential) => one.id === id,
  );
const statusOf = async (token: string) => (await as(app.url, token, 'GET', '/v1/whoami')).status;
const later = (ms: number) => new Date(clock.now() + ms).toISOString();
const entries = async () =>
  bodyOf(await send('GET', '/v1/audit?limit=1000')).entries.filter((entry: { action: string }) =>
    entry.action.startsWith('tokens.'),
  );

describe('creating a credential', () => {
  it('returns its secret once, in a response that is not cached, and audits it', async () => {
    const response = await send('POST', '/v1/credentials', {
      name: 'deploys',
      role: 'operator',
    });
    const { secret, ...made } = bodyOf(response);
    expect(response).toMatchObject({
      status: 201,
      headers: { 'cache-control': 'no-store' },
    });
    expect(secret).toMatch(/^dawatch_operator_[\w-]{43}$/);
    expect(made).toEqual({
      id: made.id,
      name: 'deploys',
      person: null,
      role: 'operator',
      state: 'valid',
      created_at: expect.any(String),
      expires_at: null,
      last_used_at: null,
      revoked_at: null,
    });
    expect(bodyOf(await as(app.url, secret, 'GET', '/v1/whoami'))).toMatchObject({
      role: 'operator',
    });
    const list = await send('GET', '/v1/credentials?limit=1');
    expect(bodyOf(list).credentials).toEqual([{ ...made, last_used_at: expect.any(String) }]);
    const audit = await entries();
    expect(audit[0]).toMatchObject({
      action: 'tokens.create',
      subject: String(made.id),
      detail: `${made.name}, operator`,
    });
    for (const later of [list.text, JSON.stringify(audit)])
      expect(later).not.toContain(secret.slice(20));
  });

  it.each([
    ['no role', {}, '/role'],
    ['an unknown role', { role: 'root' }, '/role'],
    ['a name of 10 kB', { role: 'user', name: 'x'.repeat(10_240) }, '/name'],
    ['a name with control characters', { role: 'user', name: 'a\u001b[2J' }, '/name'],
    ['a name of the audit', { role: 'user', name: 'cli:root' }, '/name'],
    ...LOOKALIKES.map(([how, name]): [string, object, string] => [
      `a name that looks like one of the audit: ${how}`,
      { role: 'user', name },
      '/name',
    ]),
    ['an expiry in the past', { role: 'user', expires_at: '2020-01-02T03:04:05Z' }, '/expires_at'],
    [
      'an expiry without a zone',
      { role: 'user', expires_at: '2120-01-02T03:04:05' },
      '/expires_at',
    ],
  ])('refuses %s', async (_what, fields, pointer) => {
    const before = (await entries()).length;
    const problem = problemOf(
      await send('POST', '/v1/credentials', { name: 'billing', ...fields }),
    );
    expect(problem.status).toBe(400);
    expect(problem.errors?.[0]?.pointer).toBe(pointer);
    expect(await entries()).toHaveLength(before);
  });
});

describe('an expiry', () => {
  it('ends requests and streams', async () => {
    const { id, secret } = await create({ role: 'service', expires_at: later(HOUR_MS) });
    const reader = await readEvents(app.url, '', { 'x-api-key': secret });
    clock.aheadMs += HOUR_MS;
    expect(await statusOf(secret)).toBe(401);
    expect((await shown(id))?.state).toBe('expired');
    await eventually(() => expect(clock.held(HEARTBEAT_MS)).toBe(1));
    clock.fire(HEARTBEAT_MS);
    await reader.ended;
  });
});

describe('revoking a credential', () => {
  it('is audited once, and leaves it in the list', async () => {
    const { id, secret } = await create({ role: 'service' });
    const before = (await entries()).length;
    for (let times = 0; times < 2; times++)
      expect(await send('DELETE', `/v1/credentials/${id}`)).toMatchObject({
        status: 204,
        text: '',
      });
    expect(await entries()).toHaveLength(before + 1);
    expect(await statusOf(secret)).toBe(401);
    expect(await shown(id)).toMatchObject({ state: 'revoked' });
  });

  it('an unknown one is 404', async () => {
    expect((await send('DELETE', '/v1/credentials/4711')).status).toBe(404);
    expect((await send('DELETE', '/v1/credentials/billing')).status).toBe(400);
  });
});

describe('the last credential with the role admin', () => {
  it('is not revoked, unless another one stays valid or the settings have one', async () => {
    const database = `${tempFolder()}/ledger.db`;
    const first = await openApp({ database, adminToken: ADMIN_TOKEN });
    const make = async (url: string, token: string, fields: object) =>
      bodyOf(
        await as(url, token, 'POST', '/v1/credentials', { name: 'ops', ...fields }),
      ) as Credential;
    const gone = await make(first.url, ADMIN_TOKEN, { role: 'admin' });
    expect((await as(first.url, gone.secret, 'DELETE', `/v1/credentials/${gone.id}`)).status).toBe(
      204,
    );
    const { id, secret } = await make(first.url, ADMIN_TOKEN, { role: 'admin' });
    await first.close();

    const { url } = await appForTest({ database });
    const revoke = (credential: { id: number }) =>
      as(url, secret, 'DELETE', `/v1/credentials/${credential.id}`);
    expect(problemOf(await revoke({ id }))).toMatchObject({
      status: 409,
      detail: /last valid one with the role admin/,
    });
    const lasting = await make(url, secret, { role: 'admin' });
    expect((await revoke({ id })).status).toBe(204);
    expect((await as(url, lasting.secret, 'DELETE', `/v1/credentials/${lasting.id}`)).status).toBe(
      409,
    );
  });
});

it('lists credentials page by page, newest first, without the secrets', async () => {
  const made: Credential[] = [];
  for (let count = 0; count < 3; count++)
    made.push(await create({ role: 'user', name: `page ${count}` }));
  const first = bodyOf(await send('GET', '/v1/credentials?limit=2'));
  const second = bodyOf(await send('GET', `/v1/credentials?limit=1&cursor=${first.next_cursor}`));
  const listed: Credential[] = [...first.credentials, ...second.credentials];
  expect(listed.map(({ id }) => id)).toEqual(made.toReversed().map(({ id }) => id));
  expect(JSON.stringify(listed)).not.toContain('secret":');
});
