import { existsSync, writeFileSync } from 'node:fs';
import { expect, it, vi } from 'vitest';
import { Ledger } from '../../../src/ledger/ledger.ts';
import { readEvents } from '../../support/app/event-reader.ts';
import { openTenants, track } from '../../support/app/tenants.ts';
import { rawConnection } from '../../support/ledger/ledger-file.ts';

const UNTIL = { timeout: 15_000, interval: 10 };

it('a reload adds a tenant, changes its quota, and removes it; its ledger is kept', async () => {
  const world = await openTenants();
  const client = world.client('a', 'service');
  await track(client, 'before');
  expect(await world.reload({ tenants: { a: { max_open: 2 }, c: {} } })).toEqual({
    kind: 'reloaded',
    changes: expect.arrayContaining(['tenants.a.max_open', 'tenants.b.weight', 'tenants.c.weight']),
  });
  expect((await track(client, 'second')).status).toBe(202);
  expect((await track(client, 'third')).status).toBe(429);
  expect((await world.client('b').send('/v1/submissions')).text).toContain('is not configured');
  await vi.waitUntil(() => world.logs().some(({ event }) => event === 'tenant.stopped'), UNTIL);
  expect(world.logs().filter(({ event }) => String(event).startsWith('tenant.'))).toEqual([
    expect.objectContaining({ event: 'tenant.started', tenant: 'c' }),
    expect.objectContaining({ event: 'tenant.stopped', tenant: 'b' }),
  ]);
  expect(existsSync(world.ledgerOf('b'))).toBe(true);
  const { tenants } = (await world.client(null).json('/v1/tenants')) as { tenants: { name: string }[] };
  expect(tenants.map(({ name }) => name)).toEqual(['a', 'c']);

  await world.reload({ tenants: { a: {}, b: {} } });
  expect((await world.client('b').send('/v1/submissions')).status).toBe(200);
  expect((await track(client, 'third')).status).toBe(202);
  expect(await client.json('/v1/submissions/before')).toMatchObject({ submission_id: 'before' });
});

it('a removed tenant ends the readers of its feed, and sends no polls', async () => {
  const world = await openTenants();
  await track(world.client('a', 'service'), 'open');
  const headers = { 'x-api-key': [], authorization: `Bearer ${world.client('a').token}` };
  const reader = await readEvents(world.url, '', headers);
  await world.reload({ tenants: {} });
  await reader.ended;
  await vi.waitUntil(() => world.logs().filter(({ event }) => event === 'tenant.stopped').length === 2, UNTIL);
});

it('a reload that is refused because the ledger of a tenant is in use changes nothing, and can be repeated', async () => {
  const world = await openTenants({ tenants: { a: {} } });
  const file = world.ledgerOf('b');
  const holder = new Ledger({ file, now: 0 });
  const next = { tenants: { a: { max_open: 1 }, b: {} } };
  expect(await world.reload(next)).toEqual({
    kind: 'refused',
    reason: expect.stringContaining('the tenant b cannot be served'),
  });
  expect((await track(world.client('a', 'service'), 'one', 'two')).status).toBe(202);
  holder.close();
  expect(await world.reload(next)).toMatchObject({ kind: 'reloaded' });
  expect((await track(world.client('a', 'service'), 'three')).status).toBe(429);
});

it('a refused reload leaves no tenant running, also if the audit cannot store its result', async () => {
  const world = await openTenants({ tenants: { a: {} } });
  const isFree = (tenant: string) => {
    const ledger = new Ledger({ file: world.ledgerOf(tenant), now: 0 });
    ledger.close();
    return true;
  };
  const holder = new Ledger({ file: world.ledgerOf('z'), now: 0 });
  expect(await world.reload({ tenants: { a: {}, b: {}, z: {} } })).toMatchObject({ kind: 'refused' });
  holder.close();
  expect(isFree('b')).toBe(true);

  const db = rawConnection(world.database);
  db.exec("CREATE TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(FAIL, 'no room'); END");
  await expect(world.reload({ tenants: { a: {}, b: {} } })).rejects.toThrow('no room');
  expect(isFree('b')).toBe(true);
  db.exec('DROP TRIGGER full');
  db.close();
  expect(await world.reload({ tenants: { a: {}, b: {} } })).toMatchObject({ kind: 'reloaded' });
  expect(await world.client(null).json('/v1/tenants')).toMatchObject({ tenants: [{ name: 'a' }, { name: 'b' }] });
});

it('a start is refused if the ledger of a tenant cannot be opened, and names the tenant', async () => {
  const world = await openTenants({ tenants: { a: {} } });
  await world.close();
  writeFileSync(world.ledgerOf('a'), 'not a ledger');
  await expect(world.restart()).rejects.toThrow('the tenant a cannot be served');
  await world.restart({ tenants: {} });
  expect((await world.client(null).send('/v1/submissions')).status).toBe(200);
});
