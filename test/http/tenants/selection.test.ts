import { existsSync } from 'node:fs';
import { expect, it } from 'vitest';
import { tenantsFolder } from '../../../src/ledger/file/files.ts';
import { call, problemOf } from '../../support/app/http-calls.ts';
import { addToken, openTenants, track } from '../../support/app/tenants.ts';

const inTenant = (name: string | string[]) => ({ headers: { 'dawatch-tenant': name as string } });

it('an admin without a tenant acts in a tenant by the header, and its changes are audited there', async () => {
  const world = await openTenants();
  const admin = world.client(null);
  await admin.json('/v1/submissions', { method: 'POST', body: { submission_id: 'x' }, ...inTenant('a') });
  await admin.json('/v1/submissions/x', { method: 'DELETE', ...inTenant('a') });
  expect((await admin.send('/v1/submissions/x')).status).toBe(404);
  expect((await world.client('b').send('/v1/submissions/x')).status).toBe(404);
  expect(await world.client('a').json('/v1/submissions/x')).toMatchObject({ status: 'cancelled' });
  const { entries } = (await world.client('a').json('/v1/audit')) as { entries: { caller: string; action: string }[] };
  expect(entries[0]).toMatchObject({ caller: 'the admin of null', action: 'submissions.cancel' });
  expect(await admin.json('/v1/whoami', inTenant('a'))).toMatchObject({ tenant: 'a' });
  expect(await admin.json('/v1/whoami')).toMatchObject({ tenant: null });
  expect(await world.client('b').json('/v1/whoami')).toMatchObject({ tenant: 'b' });
});

it('the header is refused from others, and for what is no tenant', async () => {
  const world = await openTenants();
  const status = async (tenant: string | null, role: 'service' | 'operator' | 'admin', name: string | string[]) =>
    (await world.client(tenant, role).send('/v1/submissions', inTenant(name))).status;
  expect(await status(null, 'service', 'a')).toBe(403);
  expect(await status(null, 'operator', 'a')).toBe(403);
  expect(await status('a', 'admin', 'b')).toBe(403);
  expect(await status('a', 'admin', 'a')).toBe(200);
  expect(await status(null, 'admin', 'never')).toBe(404);
  for (const wrong of ['../x', '', 'x'.repeat(300), 'A', 'default', 'a b', 'a%2f', '.', ['a', 'b']])
    expect([400, 404]).toContain(await status(null, 'admin', wrong));
  const reload = await world.client(null).send('/v1/reload', { method: 'POST', ...inTenant('a') });
  expect(problemOf(reload).detail).toContain('belongs to no tenant');
});

it('a credential of a tenant that is not configured is refused with the reason', async () => {
  const world = await openTenants();
  await world.restart({ tenants: { b: {} } });
  const { status, text } = await world.client('a').send('/v1/submissions');
  expect([status, text]).toEqual([403, expect.stringContaining('the tenant a of this credential is not configured')]);
  expect((await world.client('b').send('/v1/submissions')).status).toBe(200);
  expect(world.logs().filter(({ event }) => event === 'tenant.not_configured')).toEqual([
    expect.objectContaining({ level: 'warn', tenant: 'a' }),
  ]);
  await world.restart();
  expect((await world.client('a').send('/v1/submissions')).status).toBe(200);
});

it('a request whose two credentials belong to different tenants has the one of the header that decides', async () => {
  const world = await openTenants();
  await track(world.client('a', 'service'), 'of-a');
  const both = (name: string) =>
    call(world.url, name, {
      headers: { 'x-api-key': world.client('a').token, authorization: `Bearer ${world.client('b').token}` },
    });
  expect((await both('/v1/submissions/of-a')).status).toBe(200);
  expect(JSON.parse((await both('/v1/whoami')).text)).toMatchObject({ tenant: 'a' });
});

it('tenants are listed with their quotas and counts, for operators without a tenant', async () => {
  const world = await openTenants({ tenants: { a: { max_open: 5, weight: 2 }, b: {} } });
  await track(world.client('a', 'service'), 'one', 'two');
  const { tenants } = (await world.client(null, 'operator').json('/v1/tenants')) as { tenants: object[] };
  expect(tenants).toEqual([
    expect.objectContaining({ name: 'a', max_open: 5, weight: 2, open: 2, ledger: 'ok' }),
    expect.objectContaining({ name: 'b', max_open: null, requests_per_minute: null, open: 0 }),
  ]);
});

it('the requests of a tenant are limited together, and those of others are not', async () => {
  const world = await openTenants({ tenants: { a: { requests_per_minute: 5 }, b: {} } });
  const statuses: number[] = [];
  for (const role of ['service', 'operator', 'admin', 'service', 'admin', 'operator'] as const)
    statuses.push((await world.client('a', role).send('/v1/submissions')).status);
  expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
  const refused = await world.client('a').send('/v1/submissions');
  expect(problemOf(refused).detail).toContain('at most 5 requests a minute of all credentials of the tenant');
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
  expect((await world.client('b').send('/v1/submissions')).status).toBe(200);
  expect((await world.client(null).send('/v1/submissions')).status).toBe(200);
});

it('metrics have a label for tenants, one description for each family, and none without tenants', async () => {
  const world = await openTenants({ tenants: { a: { max_open: 7 }, b: {} } });
  await track(world.client('a', 'service'), 'one', 'two');
  await track(world.client(null, 'service'), 'of-none');
  const { text } = await world.client(null).send('/metrics');
  expect(text).toContain('dawatch_submissions{status="tracking",tenant="a"} 2');
  expect(text).toContain('dawatch_submissions{status="tracking"} 1');
  expect(text).toContain('dawatch_open_submissions_limit{tenant="a"} 7');
  expect(text).not.toMatch(/dawatch_http_requests_total\{.*tenant=/);
  const families = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
  expect(new Set(families).size).toBe(families.length);
  await world.restart({ tenants: {} });
  expect((await world.client(null).send('/metrics')).text).not.toContain('tenant=');
});

it('without tenants there is no folder for them', async () => {
  const world = await openTenants({ tenants: {} });
  expect(existsSync(tenantsFolder(world.database))).toBe(false);
  expect(await world.client(null).json('/v1/tenants')).toEqual({ tenants: [] });
});

it('a token of a tenant can be stored before the tenant is configured', async () => {
  const world = await openTenants({ tenants: {} });
  await world.close();
  const token = addToken(world.database, 'later', 'service');
  await world.restart({ tenants: { later: {} } });
  const { status } = await call(world.url, '/v1/submissions', { headers: { 'x-api-key': token } });
  expect(status).toBe(200);
});

it('an admin of a tenant manages the credentials of that tenant only', async () => {
  const world = await openTenants();
  const [admin, ofTenant] = [world.client(null), world.client('a')];
  type Listed = { credentials: { id: number; name: string; tenant: string | null }[] };
  const { credentials: all } = (await admin.json('/v1/credentials')) as Listed;
  const { credentials: own } = (await ofTenant.json('/v1/credentials')) as Listed;
  expect(new Set(all.map(({ tenant }) => tenant))).toEqual(new Set([null, 'a', 'b']));
  expect(own.map(({ tenant }) => tenant)).toEqual(['a', 'a', 'a', 'a']);
  for (const { id } of all.filter(({ tenant }) => tenant !== 'a')) {
    const path = `/v1/credentials/${id}`;
    expect((await ofTenant.send(path)).status).toBe(404);
    expect((await ofTenant.send(path, { method: 'DELETE' })).status).toBe(404);
    expect((await ofTenant.send(path, { method: 'PATCH', body: { name: 'x' } })).status).toBe(404);
    expect((await ofTenant.send(`${path}/rotate`, { method: 'POST', body: {} })).status).toBe(404);
  }
  const create = { method: 'POST', body: { name: 'new', role: 'admin' } };
  const created = (await ofTenant.json('/v1/credentials', create)) as { tenant: string; secret: string };
  expect(created.tenant).toBe('a');
  const use = (path: string) => call(world.url, path, { headers: { 'x-api-key': created.secret } });
  expect(JSON.parse((await use('/v1/whoami')).text)).toMatchObject({ tenant: 'a', role: 'admin' });
  expect((await use('/v1/tenants')).status).toBe(403);
  expect(await admin.json('/v1/credentials', { ...create, ...inTenant('b') })).toMatchObject({ tenant: 'b' });
  expect((await world.client('b').send('/v1/credentials')).text).not.toContain('of a');
});
