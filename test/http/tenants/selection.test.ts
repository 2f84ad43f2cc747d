import { existsSync } from 'node:fs';
import { expect, it, vi } from 'vitest';
import { tenantsFolder } from '../../../src/ledger/file/files.ts';
import { call, problemOf } from '../../support/app/http-calls.ts';
import { addToken, openTenants, type TenantClient, track } from '../../support/app/tenants.ts';
import { rawConnection } from '../../support/ledger/ledger-file.ts';
import { HeldClock } from '../../support/virtual-time/held-clock.ts';

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

it('metrics of tenants are shown to operators without a tenant only', async () => {
  const world = await openTenants({ tenants: { acme: { max_open: 7 }, b: {} } });
  await track(world.client('acme', 'service'), 'one', 'two');
  const anybody = await call(world.url, '/metrics', { headers: { 'x-api-key': [] } });
  const refused = [
    anybody,
    await call(world.url, '/metrics', { headers: { authorization: 'Bearer wrong' } }),
    await world.client('b').send('/metrics'),
    await world.client('acme').send('/metrics'),
    await world.client(null, 'service').send('/metrics'),
  ];
  for (const { status, text } of refused) {
    expect(status).toBe(200);
    expect(text).toContain('dawatch_submissions{status="tracking"} 0');
    expect(text).not.toContain('tenant=');
    expect(text).not.toContain('acme');
  }
  expect((await world.client(null, 'operator').send('/metrics')).text).toContain(
    'dawatch_submissions{status="tracking",tenant="acme"} 2',
  );
  expect((await call(world.url, '/metrics', { headers: { 'x-api-key': [] } })).text).not.toContain('acme');
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

it('changes of the credentials of a tenant are in its audit, too, and those of others are not', async () => {
  const world = await openTenants();
  const [admin, ofTenant] = [world.client(null), world.client('a')];
  const create = { method: 'POST', body: { name: 'new', role: 'service' } };
  const { id } = (await ofTenant.json('/v1/credentials', create)) as { id: number };
  await admin.json(`/v1/credentials/${id}/rotate`, { method: 'POST', body: { overlap_s: 60 } });
  await ofTenant.json(`/v1/credentials/${id}`, { method: 'PATCH', body: { name: 'newer' } });
  await admin.send(`/v1/credentials/${id}`, { method: 'DELETE' });
  await admin.send(`/v1/credentials/${id}`, { method: 'DELETE' });
  await admin.json('/v1/credentials', create);
  const changes = async (client: TenantClient) => {
    const { entries } = (await client.json('/v1/audit')) as { entries: Record<string, unknown>[] };
    return entries.map(({ caller, action, subject, detail }) => [caller, action, subject, detail]);
  };
  const own = [
    ['the admin of null', 'tokens.revoke', String(id), null],
    ['the admin of a', 'tokens.update', String(id), 'name'],
    ['the admin of null', 'tokens.rotate', String(id), 'overlap_s 60'],
    ['the admin of a', 'tokens.create', String(id), 'service, tenant a'],
  ];
  expect(await changes(ofTenant)).toEqual(own);
  expect(await changes(world.client('b'))).toEqual([]);
  expect(await changes(admin)).toEqual([['the admin of null', 'tokens.create', String(id + 1), 'service'], ...own]);
});

it('a credential of a tenant is unchanged if the audit of the tenant cannot be written', async () => {
  const world = await openTenants();
  const db = rawConnection(world.ledgerOf('a'));
  db.exec("CREATE TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(FAIL, 'no room'); END");
  db.close();
  const create = { method: 'POST', body: { name: 'new', role: 'service' } };
  expect((await world.client('a').send('/v1/credentials', create)).status).toBe(500);
  expect(((await world.client('a').json('/v1/credentials')) as { credentials: unknown[] }).credentials).toHaveLength(4);
  expect(((await world.client(null).json('/v1/audit')) as { entries: unknown[] }).entries).toEqual([]);
});

it('a report by credential names the credentials of the tenant, also those that the audit never had', async () => {
  const clock = new HeldClock(60_000);
  const world = await openTenants({ clock });
  await track(world.client('a', 'service'), 'one');
  await world.client(null).json('/v1/submissions', {
    method: 'POST',
    body: { submission_id: 'two' },
    ...inTenant('a'),
  });
  for (const id of ['one', 'two']) await world.client('a').json(`/v1/submissions/${id}`, { method: 'DELETE' });
  clock.fire(60_000);
  const path = '/v1/reports?group_by=credential';
  // They are counted in steps.
  await vi.waitFor(async () => {
    const { rows } = (await world.client('a', 'operator').json(path)) as { rows: { group: string }[] };
    expect(rows.map(({ group }) => group).toSorted()).toEqual(['the admin of null', 'the service of a']);
  });
});
