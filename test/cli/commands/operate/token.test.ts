import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { call } from '../../../support/app/http-calls.ts';
import { openApp, useAppWithSandbox } from '../../../support/app/running-app.ts';
import { openLedger } from '../../../support/ledger/ledger-file.ts';
import { cli, cliProcess } from '../../../support/processes/cli.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

const app = useAppWithSandbox();
type Listed = {
  id: number;
  role: string;
  name: string;
  last_used_at: string | null;
  expires_at: string | null;
  revoked_at: string | null;
};

const run = (database: string, args: string[], runs = cli) =>
  runs(['token', ...args], { env: { DAWATCH_DATABASE: database, DAWATCH_API_KEY: null } });

async function create(database: string, role: string, name: string): Promise<string> {
  const { code, stdout } = await run(database, ['create', '--role', role, '--name', name]);
  expect(code).toBe(0);
  return stdout.trimEnd();
}

async function listed(database: string, name: string): Promise<Listed> {
  const { stdout } = await run(database, ['list', '--json']);
  const rows = JSON.parse(stdout) as Listed[];
  return rows.find((row) => row.name === name) ?? expect.fail(`${name} is not listed`);
}

const request = (url: string, token: string, path = '/v1/submissions') =>
  call(url, path, { headers: { 'x-api-key': [], authorization: `Bearer ${token}` } });

describe('beside a running server', () => {
  it('a token is printed once, alone on stdout, and works at once', async () => {
    const { code, stdout, stderr } = await run(
      app.database,
      ['create', '--role', 'service', '--name', 'a b ü'],
      cliProcess,
    );
    expect(code).toBe(0);
    expect(stdout).toMatch(/^dawatch_service_[\w-]{43}\n$/);
    expect(stderr).toMatch(
      /^token \d+, service, "a b ü": save it now, it cannot be shown again\n$/,
    );
    expect((await request(app.url, stdout.trim())).status).toBe(200);
  });

  it('a revoked token is refused from the next request on, with the same response as an unknown token', async () => {
    const token = await create(app.database, 'service', 'leaver');
    expect((await request(app.url, token)).status).toBe(200);
    const { id } = await listed(app.database, 'leaver');
    const { code, stdout, stderr } = await run(app.database, ['revoke', String(id)], cliProcess);
    expect([code, stdout, stderr]).toEqual([0, '', `token ${id}, "leaver", is revoked\n`]);

    const [revoked, unknown] = await Promise.all([
      request(app.url, token),
      request(app.url, `${token}x`),
    ]);
    expect(revoked.status).toBe(401);
    const comparable = ({ headers, text }: typeof revoked) => {
      const { date: _, 'ratelimit-remaining': __, 'x-request-id': ___, ...rest } = headers;
      return [rest, { ...JSON.parse(text), instance: '' }];
    };
    expect(comparable(revoked)).toEqual(comparable(unknown));
    expect((await listed(app.database, 'leaver')).revoked_at).toMatch(/^\d{4}-.*Z$/);
  });

  it('lists when a token was last used, to the minute', async () => {
    const token = await create(app.database, 'service', 'worker');
    expect((await listed(app.database, 'worker')).last_used_at).toBeNull();
    await request(app.url, token);
    const first = (await listed(app.database, 'worker')).last_used_at;
    expect(first).toMatch(/^\d{4}-.*Z$/);
    await request(app.url, token);
    expect((await listed(app.database, 'worker')).last_used_at).toBe(first);
  });

  it('a rotated token and its successor work until the end of the overlap, and the list shows the use of both', async () => {
    const old = await create(app.database, 'service', 'rotating');
    const { id } = await listed(app.database, 'rotating');
    const { code, stdout, stderr } = await run(app.database, [
      'rotate',
      String(id),
      '--overlap',
      '2h',
    ]);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^dawatch_service_[\w-]{43}\n$/)]);
    expect(stderr).toMatch(
      new RegExp(
        `^token ${id}, the old one until \\S+, "rotating": save it now, it cannot be shown again\n$`,
      ),
    );
    expect((await request(app.url, old)).status).toBe(200);
    expect((await run(app.database, ['list'])).stdout).toMatch(
      /rotating {2}\S+ {2}never; replaced: \d{4}-/,
    );
    const next = await run(app.database, ['rotate', String(id), '--overlap', '0s']);
    expect(next.stderr).toContain('the old one is refused');
    const statuses = [old, stdout.trim(), next.stdout.trim()].map(
      async (token) => (await request(app.url, token)).status,
    );
    expect(await Promise.all(statuses)).toEqual([401, 401, 200]);
  });

  it('a token can have scopes of its own and an expiry, which can be changed', async () => {
    const args = [
      'create',
      '--scopes',
      'submissions:read, webhooks:write',
      '--name',
      'scoped',
      '--expires',
      '90d',
    ];
    const { stdout, stderr } = await run(app.database, args);
    expect(stderr).toContain('submissions:read webhooks:write, "scoped"');
    expect((await request(app.url, stdout.trim())).status).toBe(200);
    const { id, expires_at } = await listed(app.database, 'scoped');
    expect(expires_at).toMatch(/^\d{4}-.*Z$/);
    const changed = await run(app.database, [
      'update',
      String(id),
      '--expires',
      'never',
      '--name',
      'lasting',
    ]);
    expect([changed.code, changed.stderr]).toEqual([
      0,
      `token ${id}, "lasting", does not expire\n`,
    ]);
    expect(await listed(app.database, 'lasting')).toMatchObject({ id, expires_at: null });
  });

  it('a token grants its role only', async () => {
    const user = await create(app.database, 'user', 'reader');
    expect((await request(app.url, user)).status).toBe(403);
    expect((await request(app.url, await create(app.database, 'admin', 'boss'))).status).toBe(200);
  });
});

describe('without a server', () => {
  const folder = () => {
    const ledger = openLedger();
    ledger.close();
    return ledger.file;
  };

  it('creates the first token, after which the server creates none of its own', async () => {
    const database = folder();
    const token = await create(database, 'service', 'first');
    const made: string[] = [];
    const started = await openApp({ database, apiKey: null, onNewKey: (key) => made.push(key) });
    expect((await request(started.url, token)).status).toBe(200);
    await started.close();
    expect(made).toEqual([]);
  });

  it('keeps only the SHA-256 of a token', async () => {
    const database = folder();
    const token = await create(database, 'admin', 'hashed');
    const bytes = Buffer.concat(
      readdirSync(dirname(database)).map((name) => readFileSync(join(dirname(database), name))),
    );
    expect(bytes.includes(createHash('sha256').update(token).digest())).toBe(true);
    expect(bytes.includes(token)).toBe(false);
    expect(bytes.includes(token.slice('dawatch_admin_'.length))).toBe(false);
  });

  it('lists every token as a table', async () => {
    const ledger = openLedger();
    ledger.credentials.add({ hash: Buffer.alloc(32, 1), role: 'service', name: 'billing' }, 0);
    ledger.credentials.add({ hash: Buffer.alloc(32, 2), role: 'admin', name: 'ops' }, 1_000);
    ledger.credentials.revoke(2, 61_000);
    const { stdout } = await run(ledger.file, ['list']);
    expect(stdout.split('\n')).toEqual([
      'id  role     name     created                   last used  expires  revoked',
      '1   service  billing  1970-01-01T00:00:00.000Z  never      never    -',
      '2   admin    ops      1970-01-01T00:00:01.000Z  never      never    1970-01-01T00:01:01.000Z',
      '',
    ]);
  });

  it('revoking a token twice is reported and is not an error', async () => {
    const database = folder();
    await create(database, 'service', 'twice');
    await run(database, ['revoke', '1']);
    const again = await run(database, ['revoke', '1']);
    expect([again.code, again.stderr]).toEqual([0, 'token 1, "twice", was already revoked\n']);
  });

  it('revokes the last admin token, and lets it expire, only with --force', async () => {
    const database = folder();
    await create(database, 'admin', 'ops');
    const advice =
      'is the last one of the ledger with the scope admin that stays valid: create another one first, or use --force';
    for (const args of [
      ['revoke', '1'],
      ['update', '1', '--expires', '1h'],
    ]) {
      const { code, stderr } = await run(database, args);
      expect([code, stderr]).toEqual([2, `dawatch: token 1 ${advice}\n`]);
    }
    expect((await run(database, ['update', '1', '--expires', '1h', '--force'])).code).toBe(0);
    expect((await listed(database, 'ops')).expires_at).toMatch(/^\d{4}-.*Z$/);
    expect((await run(database, ['revoke', '1', '--force'])).code).toBe(0);
    const { code, stderr } = await run(database, ['rotate', '1']);
    expect([code, stderr]).toEqual([2, 'dawatch: token 1 is revoked\n']);
  });
});

describe('exits with 2 for', () => {
  const missing = () => join(tempFolder(), 'missing.db');

  it.each([
    [
      'an unknown role',
      ['create', '--role', 'root', '--name', 'x'],
      'Allowed choices are service, user, operator, admin',
    ],
    ['no role', ['create', '--name', 'x'], 'either --role or --scopes is required, and not both'],
    [
      'a role and scopes',
      ['create', '--name', 'x', '--role', 'user', '--scopes', 'users:read'],
      'either --role or --scopes is required, and not both',
    ],
    [
      'an unknown scope',
      ['create', '--name', 'x', '--scopes', 'users:read,users'],
      'Allowed scopes are submissions:read',
    ],
    ['no scopes', ['create', '--name', 'x', '--scopes', ''], 'Allowed scopes are submissions:read'],
    [
      'an expiry in the past',
      ['create', '--name', 'x', '--role', 'user', '--expires', '2020-01-02T03:04:05Z'],
      '--expires must be in the future',
    ],
    [
      'an expiry that is no time',
      ['create', '--name', 'x', '--role', 'user', '--expires', 'soon'],
      'Expected a duration',
    ],
    ['an update of nothing', ['update', '7'], '--name or --expires is required'],
    ['an overlap above the maximum', ['rotate', '7', '--overlap', '31d'], 'Expected 0s to 30d'],
    ['no name', ['create', '--role', 'user'], "'--name <name>' not specified"],
    ['an empty name', ['create', '--role', 'user', '--name', ''], '1 to 64 printable characters'],
    [
      'a reserved name of dawatch',
      ['create', '--role', 'user', '--name', 'forwarded:1a2b3c4d'],
      'must not begin with',
    ],
    [
      'a name of refused requests',
      ['create', '--role', 'user', '--name', 'unauthenticated'],
      'must not begin with',
    ],
    [
      'a name that settings use',
      ['create', '--role', 'user', '--name', 'DAWATCH_API_KEY'],
      'must not begin with',
    ],
    ['a blank name', ['create', '--role', 'user', '--name', '  '], '1 to 64 printable characters'],
    [
      'a name of 65 characters',
      ['create', '--role', 'user', '--name', 'x'.repeat(65)],
      '1 to 64 printable characters',
    ],
    [
      'a name with control characters',
      ['create', '--role', 'user', '--name', 'a\u001b[2J'],
      '1 to 64 printable characters',
    ],
    [
      'a name of two lines',
      ['create', '--role', 'user', '--name', 'a\nb'],
      '1 to 64 printable characters',
    ],
    [
      'a name with a direction override',
      ['create', '--role', 'user', '--name', 'a\u202eb'],
      '1 to 64 printable characters',
    ],
    ['an id that is not a number', ['revoke', 'billing'], 'a number from `dawatch token list`'],
    ['a list without a ledger', ['list'], 'there is no ledger at '],
    ['an unknown token', ['revoke', '7'], 'there is no '],
  ])('%s', async (_, args, message) => {
    const { code, stdout, stderr } = await run(missing(), args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
  });

  it('an unknown id', async () => {
    const { file } = openLedger();
    const { code, stderr } = await run(file, ['revoke', '7']);
    expect([code, stderr]).toEqual([
      2,
      'dawatch: there is no token 7: `dawatch token list` shows them\n',
    ]);
  });
});

describe('of a person who signs in at a provider', () => {
  /** A ledger with the person Ada. */
  function withPerson() {
    const ledger = openLedger();
    const person = {
      issuer: 'https://login.example',
      subject: 'ada',
      name: 'ada@example.com',
      role: 'operator',
    };
    const session = { hash: Buffer.alloc(32, 1), maxAgeMs: 1_000, replaces: undefined };
    ledger.people.signIn(person, session, { address: '127.0.0.1', now: 0 });
    ledger.close();
    return ledger.file;
  }

  it('a revoked token is valid again after readmit, which needs a person', async () => {
    const database = withPerson();
    await create(database, 'service', 'billing');
    expect(await run(database, ['readmit', '1'])).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/"person:1", was not revoked/),
    });
    expect((await run(database, ['revoke', '1'])).code).toBe(0);
    expect(await run(database, ['rotate', '1'])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/admitted again/),
    });
    expect(await run(database, ['readmit', '1'])).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/"person:1", is admitted again/),
    });
    expect(await listed(database, 'person:1')).toMatchObject({ revoked_at: null });
    expect(await run(database, ['readmit', '2'])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/belongs to no person/),
    });
    expect((await run(database, ['readmit', '9'])).code).toBe(2);
  });
});
