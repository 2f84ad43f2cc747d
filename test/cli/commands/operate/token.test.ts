import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { call } from '../../../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../../../support/app/lookups.ts';
import { openApp, useAppWithSandbox } from '../../../support/app/running-app.ts';
import { openLedger } from '../../../support/ledger/ledger-file.ts';
import { cli } from '../../../support/processes/cli.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

const app = useAppWithSandbox({ adminToken: ADMIN_TOKEN });
/** Runs with the admin token; `create` uses the ledger. */
const run = (line: string) =>
  cli(['token', ...line.split(' ')], {
    env: {
      DAWATCH_URL: app.url,
      DAWATCH_DATABASE: app.database,
      DAWATCH_API_KEY: null,
      DAWATCH_ADMIN_TOKEN: ADMIN_TOKEN,
    },
  });
const create = async (options: string) => (await run(`create ${options}`)).stdout.trim();
const statusOf = async (token: string) => {
  const headers = { 'x-api-key': [], authorization: `Bearer ${token}` };
  return (await call(app.url, '/v1/submissions', { headers })).status;
};

async function listed(name: string): Promise<{ id: number } & Record<string, unknown>> {
  const rows = JSON.parse((await run('list --json')).stdout);
  return rows.find((row: { name: string }) => row.name === name) ?? expect.fail(`no ${name}`);
}

describe('create', () => {
  it('prints a token once, alone on stdout, which works at once beside a running server', async () => {
    const { code, stdout, stderr } = await run('create --role service --name ab-c');
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^dawatch_service_[\w-]{43}\n$/)]);
    expect(stderr).toMatch(/^token \d+, service, "ab-c": save it now, it cannot be shown again\n$/);
    expect(await statusOf(stdout.trim())).toBe(200);
  });

  it('creates the first token before a server runs, stores only its SHA-256, and is audited with the user of the system', async () => {
    const ledger = openLedger();
    ledger.close();
    const database = ledger.file;
    const { stdout } = await cli(['token', 'create', '--role', 'admin', '--name', 'first'], {
      env: { DAWATCH_DATABASE: database },
    });
    const token = stdout.trim();
    const bytes = Buffer.concat(
      readdirSync(dirname(database)).map((name) => readFileSync(join(dirname(database), name))),
    );
    expect(bytes.includes(createHash('sha256').update(token).digest())).toBe(true);
    expect(bytes.includes(token.slice('dawatch_admin_'.length))).toBe(false);
    const made: string[] = [];
    const started = await openApp({ database, apiKey: null, onNewKey: (key) => made.push(key) });
    const headers = { authorization: `Bearer ${token}` };
    const { text } = await call(started.url, '/v1/audit', { headers });
    await started.close();
    expect(made).toEqual([]);
    expect(JSON.parse(text).entries).toMatchObject([
      { caller: `cli:${userInfo().username}`, action: 'tokens.create', subject: '1' },
    ]);
  });
});

it('list shows every token as a table', async () => {
  await create('--role user --name listed');
  const { stdout } = await run('list');
  expect(stdout).toMatch(/^id +role +name +created +last used +expires +revoked$/m);
  expect(stdout).toMatch(/^\d+ +user +listed +\S+Z +never +never +-$/m);
});

it('revoke lets the server refuse a token', async () => {
  const token = await create('--role service --name leaver');
  const { id } = await listed('leaver');
  const stderr = `token ${id} is revoked\n`;
  expect(await run(`revoke ${id}`)).toEqual({ code: 0, stdout: '', stderr });
  expect(await statusOf(token)).toBe(401);
  const missing = await run('revoke 4711');
  expect([missing.code, missing.stderr]).toEqual([
    2,
    expect.stringContaining('(`dawatch token list` lists the tokens)'),
  ]);
});

describe('exits with 2 for', () => {
  it.each([
    ['no role', 'create --name x', "required option '--role <role>' not specified"],
    ['an unknown role', 'create --name x --role root', 'Allowed choices are'],
    [
      'a past expiry',
      'create --name x --role user --expires 2020-01-02T03:04:05Z',
      'in the future',
    ],
  ])('%s', async (_, line, message) => {
    const { code, stdout, stderr } = await run(line);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
  });

  it('a missing ledger', async () => {
    const env = { DAWATCH_DATABASE: join(tempFolder(), 'missing.db') };
    const args = ['token', 'create', '--role', 'user', '--name', 'x'];
    const { code, stderr } = await cli(args, { env });
    expect([code, stderr]).toEqual([2, expect.stringContaining('there is no ledger at ')]);
  });
});
