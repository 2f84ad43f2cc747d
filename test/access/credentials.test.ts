import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { readEvents } from '../support/app/event-reader.ts';
import { call, type HttpResponse, problemOf } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { openApp, useApp } from '../support/app/running-app.ts';
import { tempFolder } from '../support/temp-folder.ts';
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
  ['a combining mark', 'SI\u0307GHUP'],
  ['a small capital', 'SIGHU\u1d18'],
] as const;

type Credential = {
  id: number;
  secret: string;
  state: string;
  last_used_at: string | null;
  replaced_secrets: { valid_until: string; last_used_at: string | null }[];
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
const shown = async (id: number): Promise<Credential> =>
  bodyOf(await send('GET', `/v1/credentials/${id}`));
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
      scopes: ['webhooks:write'],
    });
    const { secret, ...made } = bodyOf(response);
    expect(response).toMatchObject({
      status: 201,
      headers: { 'cache-control': 'no-store', location: `credentials/${made.id}` },
    });
    expect(secret).toMatch(/^dawatch_scoped_[\w-]{43}$/);
    expect(made).toEqual({
      id: made.id,
      name: 'deploys',
      person: null,
      role: null,
      scopes: ['webhooks:write'],
      state: 'valid',
      created_at: expect.any(String),
      expires_at: null,
      last_used_at: null,
      revoked_at: null,
      replaced_secrets: [],
    });
    expect(bodyOf(await as(app.url, secret, 'GET', '/v1/whoami'))).toMatchObject({
      scopes: ['webhooks:write'],
    });
    const list = await send('GET', '/v1/credentials?limit=1');
    expect(bodyOf(list).credentials).toEqual([{ ...made, last_used_at: expect.any(String) }]);
    const audit = await entries();
    expect(audit[0]).toMatchObject({
      action: 'tokens.create',
      subject: String(made.id),
      detail: 'webhooks:write',
    });
    for (const later of [list.text, JSON.stringify(audit)])
      expect(later).not.toContain(secret.slice(20));
  });

  it('accepts scopes in any order and repeated, and the same name twice', async () => {
    const scopes = ['submissions:write', 'submissions:read', 'submissions:write'];
    expect(await create({ scopes })).toMatchObject({
      role: null,
      scopes: ['submissions:read', 'submissions:write'],
    });
    const [one, other] = [await create({ role: 'service' }), await create({ role: 'service' })];
    expect(one.id).not.toBe(other.id);
  });

  it.each([
    ['neither role nor scopes', {}, '/role'],
    ['both role and scopes', { role: 'user', scopes: ['users:read'] }, '/role'],
    ['no scopes', { scopes: [] }, '/scopes'],
    ['an unknown scope', { scopes: ['users:write'] }, '/scopes/0'],
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
  it('ends requests and streams, and a later one makes the credential valid again', async () => {
    const { id, secret } = await create({ role: 'service', expires_at: later(HOUR_MS) });
    const reader = await readEvents(app.url, '', { 'x-api-key': secret });
    clock.aheadMs += HOUR_MS;
    expect(await statusOf(secret)).toBe(401);
    expect((await shown(id)).state).toBe('expired');
    await vi.waitFor(() => expect(clock.held(HEARTBEAT_MS)).toBe(1), {
      timeout: 15_000,
      interval: 5,
    });
    clock.fire(HEARTBEAT_MS);
    await reader.ended;

    expect(problemOf(await send('POST', `/v1/credentials/${id}/rotate`, {})).detail).toContain(
      'has expired',
    );
    const extended = await send('PATCH', `/v1/credentials/${id}`, { expires_at: later(HOUR_MS) });
    expect(bodyOf(extended)).toMatchObject({ id, name: 'billing', state: 'valid' });
    expect(await statusOf(secret)).toBe(200);
    await send('PATCH', `/v1/credentials/${id}`, { expires_at: null, name: 'billing 2' });
    expect(await shown(id)).toMatchObject({ name: 'billing 2', expires_at: null });
    expect((await entries())[0]).toMatchObject({
      action: 'tokens.update',
      detail: 'name, expires never',
    });
  });

  it.each([{}, { role: 'admin' }, { expires_at: '2020-01-02T03:04:05Z' }, { name: ' ' }])(
    'is not changed by %j',
    async (patch) => {
      const { id } = await create({ role: 'service' });
      expect((await send('PATCH', `/v1/credentials/${id}`, patch)).status).toBe(400);
      expect((await entries())[0]).toMatchObject({ action: 'tokens.create' });
    },
  );
});

describe('rotating a credential', () => {
  it('accepts both secrets for the overlap, and shows the last use of each', async () => {
    const { id, secret: old } = await create({ role: 'service' });
    expect(await statusOf(old)).toBe(200);
    const response = await send('POST', `/v1/credentials/${id}/rotate`, { overlap_s: 3_600 });
    expect(response).toMatchObject({ status: 200, headers: { 'cache-control': 'no-store' } });
    const { secret, ...rotated } = bodyOf(response);
    expect(secret).toMatch(/^dawatch_service_/);
    const [replaced] = rotated.replaced_secrets;
    expect(rotated).toMatchObject({
      id,
      last_used_at: null,
      replaced_secrets: [{ last_used_at: expect.any(String) }],
    });

    clock.aheadMs += HOUR_MS / 2;
    expect(await statusOf(old)).toBe(200);
    expect(await shown(id)).toMatchObject({ last_used_at: null });
    expect((await shown(id)).replaced_secrets[0]?.last_used_at).not.toBe(replaced.last_used_at);
    expect(await statusOf(secret)).toBe(200);
    expect((await shown(id)).last_used_at).toEqual(expect.any(String));

    clock.aheadMs += HOUR_MS / 2;
    expect([await statusOf(old), await statusOf(secret)]).toEqual([401, 200]);
    expect((await shown(id)).replaced_secrets).toEqual([]);
    expect((await entries())[0]).toMatchObject({
      action: 'tokens.rotate',
      subject: String(id),
      detail: 'overlap_s 3600',
    });
  });

  it('twice keeps the earliest secret, but no longer than the newest overlap', async () => {
    const { id, secret: first } = await create({ role: 'service' });
    const rotate = async (overlap_s: number) =>
      bodyOf(await send('POST', `/v1/credentials/${id}/rotate`, { overlap_s })).secret as string;
    const second = await rotate(7_200);
    const third = await rotate(3_600);
    const statuses = async () => [
      await statusOf(first),
      await statusOf(second),
      await statusOf(third),
    ];
    expect(await statuses()).toEqual([200, 200, 200]);
    expect((await shown(id)).replaced_secrets).toHaveLength(2);
    clock.aheadMs += HOUR_MS;
    expect(await statuses()).toEqual([401, 401, 200]);
    const fourth = await rotate(3_600);
    const fifth = await rotate(0);
    expect([await statusOf(third), await statusOf(fourth), await statusOf(fifth)]).toEqual([
      401, 401, 200,
    ]);
  });

  it.each([
    { overlap_s: -1 },
    { overlap_s: 1.5 },
    { overlap_s: 10_000_000 },
    { overlap_s: '60' },
    { keep_old_s: 1 },
  ])('refuses %j and keeps the secret', async (body) => {
    const { id, secret } = await create({ role: 'service' });
    expect((await send('POST', `/v1/credentials/${id}/rotate`, body)).status).toBe(400);
    expect(await statusOf(secret)).toBe(200);
    expect((await shown(id)).replaced_secrets).toEqual([]);
  });
});

describe('revoking a credential', () => {
  it('ends all its secrets, is audited once, and leaves it in the list', async () => {
    const { id, secret: old } = await create({ role: 'service' });
    const { secret } = bodyOf(await send('POST', `/v1/credentials/${id}/rotate`, {}));
    const before = (await entries()).length;
    for (let times = 0; times < 2; times++)
      expect(await send('DELETE', `/v1/credentials/${id}`)).toMatchObject({
        status: 204,
        text: '',
      });
    expect(await entries()).toHaveLength(before + 1);
    expect([await statusOf(old), await statusOf(secret)]).toEqual([401, 401]);
    expect(await shown(id)).toMatchObject({ state: 'revoked', replaced_secrets: [] });
    for (const [method, path, body] of [
      ['POST', '/rotate', {}],
      ['PATCH', '', { name: 'again' }],
      ['POST', '/readmit', undefined],
    ] as const) {
      const problem = problemOf(await send(method, `/v1/credentials/${id}${path}`, body));
      expect(problem).toMatchObject({ status: 409, detail: `credential ${id} is revoked` });
    }
  });

  it('an unknown one is 404', async () => {
    for (const [method, path, body] of [
      ['GET', ''],
      ['DELETE', ''],
      ['PATCH', '', { name: 'x' }],
      ['POST', '/rotate', {}],
      ['POST', '/readmit'],
    ] as const)
      expect((await send(method, `/v1/credentials/4711${path}`, body)).status).toBe(404);
    expect((await send('DELETE', '/v1/credentials/billing')).status).toBe(400);
  });
});

describe('the last credential with the scope admin', () => {
  it('is neither revoked nor given an expiry, unless another one stays valid or the settings have one', async () => {
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
    const { id, secret } = await make(first.url, ADMIN_TOKEN, { scopes: ['admin'] });
    await first.close();

    const { url, close } = await openApp({ database });
    onTestFinished(close);
    const own = (method: string, body?: object) =>
      as(url, secret, method, `/v1/credentials/${id}`, body);
    const inAnHour = new Date(Date.now() + HOUR_MS).toISOString();
    const inTwoHours = new Date(Date.now() + 2 * HOUR_MS).toISOString();
    expect(problemOf(await own('DELETE'))).toMatchObject({
      status: 409,
      detail: /last one with the scope admin/,
    });
    expect((await own('PATCH', { expires_at: inTwoHours })).status).toBe(409);
    expect((await own('PATCH', { name: 'renamed' })).status).toBe(200);

    const brief = await make(url, secret, { role: 'admin', expires_at: inAnHour });
    expect((await own('PATCH', { expires_at: inTwoHours })).status).toBe(409);
    expect((await own('PATCH', { expires_at: inAnHour })).status).toBe(409);
    expect((await as(url, secret, 'DELETE', `/v1/credentials/${brief.id}`)).status).toBe(204);
    const lasting = await make(url, secret, { role: 'admin' });
    expect((await own('DELETE')).status).toBe(204);
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
