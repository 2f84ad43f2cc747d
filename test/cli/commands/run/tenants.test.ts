import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { call } from '../../../support/app/http-calls.ts';
import { openTenants, track } from '../../../support/app/tenants.ts';
import { cli, cliProcess } from '../../../support/processes/cli.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

/** Tenants, and a settings file with which commands find their ledgers. */
async function openWorld() {
  const world = await openTenants({ tenants: { a: { max_open: 5 }, b: {} } });
  const config = join(tempFolder(), 'dawatch.yaml');
  const settings = { database: world.database, tenants: { a: { max_open: 5 }, b: {} } };
  writeFileSync(config, JSON.stringify(settings));
  const env = { DAWATCH_URL: world.url, DAWATCH_ADMIN_TOKEN: world.client(null).token, DAWATCH_API_KEY: null };
  return { world, config, run: (...args: string[]) => cli(args, { env: { ...env, DAWATCH_CONFIG: config } }) };
}

it('lists the tenants with their quotas and counts', async () => {
  const { world, run } = await openWorld();
  await track(world.client('a', 'service'), 'one', 'two');
  const { code, stdout } = await run('tenants');
  expect(code).toBe(0);
  expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toMatchObject([
    ['name', 'open', 'max open', 'requests/min', 'weight', 'finalized', 'waiting', 'dead', 'ledger'],
    ['a', '2', '5', '-', '1', '0', '0', '0', 'ok'],
    ['b', '0', '-', '-', '1', '0', '0', '0', 'ok'],
    [''],
  ]);
  const { stdout: json } = await run('tenants', '--json');
  expect(JSON.parse(json).tenants.length).toBe(2);
});

it('--tenant acts in a tenant, with a server and on a ledger', async () => {
  const { world, run } = await openWorld();
  await track(world.client('a', 'service'), 'of-a');
  const { stdout } = await run('webhooks', 'create', 'https://example.com/hook', '--tenant', 'a');
  expect(stdout).toMatch(/^whsec_/);
  expect((await run('webhooks', 'list', '--tenant', 'a')).stdout).toContain('https://example.com/hook');
  expect((await run('webhooks', 'list')).stdout).not.toContain('https://example.com/hook');
  expect((await run('export', '--tenant', 'a')).stdout).toContain('of-a');
  const others = await run('export');
  expect([others.stdout, others.stderr]).toEqual([
    expect.not.stringContaining('of-a'),
    expect.stringContaining('a, b'),
  ]);

  const backup = join(tempFolder(), 'backup.db');
  expect((await run('backup', '--tenant', 'a', backup)).code).toBe(0);
  expect(existsSync(backup)).toBe(true);
  const verified = await run('audit', 'verify', '--tenant', 'a');
  expect([verified.code, verified.stdout]).toEqual([0, expect.stringMatching(/^intact: /)]);
  const reload = await run('reload', '--tenant', 'a');
  expect([reload.code, reload.stderr]).toEqual([2, expect.stringContaining('belongs to no tenant')]);
});

it('a token is created in a tenant of the settings only', async () => {
  const { world, run } = await openWorld();
  const create = (tenant: string) => run('token', 'create', '--role', 'service', '--name', 'x', '--tenant', tenant);
  const { code, stdout } = await create('b');
  expect(code).toBe(0);
  const whoami = await call(world.url, '/v1/whoami', { headers: { 'x-api-key': stdout.trim() } });
  expect(JSON.parse(whoami.text)).toMatchObject({ tenant: 'b' });
  const refused = await create('never');
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('there is no tenant "never"')]);
  expect((await run('token', 'list')).stdout).toMatch(/^id +role +tenant +name/);
});

it.each(['../x', '', 'x'.repeat(300), 'A', 'a/b'])('a ledger of the tenant %j is refused', async (name) => {
  const { run } = await openWorld();
  const { code, stderr } = await run('export', '--tenant', name);
  expect([code, stderr]).toEqual([2, expect.stringContaining('--tenant must be a name')]);
});

it('a ledger of a tenant that never existed is not created', async () => {
  const { world, run } = await openWorld();
  const { code, stderr } = await run('export', '--tenant', 'never');
  expect([code, stderr]).toEqual([2, expect.stringContaining('there is no ledger at')]);
  expect(existsSync(world.ledgerOf('never'))).toBe(false);
});

it('the doctor checks the ledger of each tenant', async () => {
  const { config } = await openWorld();
  const { stdout } = await cliProcess(['doctor'], { env: { DAWATCH_CONFIG: config, DAWATCH_API_KEY: null } });
  for (const name of ['a', 'b']) expect(stdout).toContain(`ledger.tenants/${name}.db, schema`);
});
