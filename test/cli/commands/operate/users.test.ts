import { describe, expect, it } from 'vitest';
import { SECOND, useLookups, userPath } from '../../../support/app/lookups.ts';
import { cli } from '../../../support/processes/cli.ts';
import { serve } from '../../../support/servers/upstream-server.ts';

const lookups = useLookups();
const GET = ['users', 'get', '--name', SECOND.name, '--email', SECOND.email];

/** Runs with a token of this role and no other credential. */
const run = (
  args: string[],
  role: 'service' | 'user' | 'admin' = 'admin',
  variable = 'DAWATCH_TOKEN',
) =>
  cli(args, {
    env: { DAWATCH_URL: lookups().url, DAWATCH_API_KEY: null, [variable]: lookups().tokens[role] },
  });

describe('users get', () => {
  it('shows one user, a field per line', async () => {
    const { code, stdout, stderr } = await run(GET, 'user');
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^id {15,}[0-9a-f-]{36}\n/);
    for (const line of [
      /^name +User 2$/m,
      /^email +user2@example\.com$/m,
      /^app_id +101$/m,
      /^assigned_wallet {2}0x/m,
    ])
      expect(stdout).toMatch(line);
  });

  it('prints the same JSON as the HTTP interface', async () => {
    const { code, stdout } = await run([...GET, '--json'], 'admin', 'DAWATCH_ADMIN_TOKEN');
    expect(code).toBe(0);
    expect(stdout).toBe(`${(await lookups().get(userPath(), lookups().tokens.user)).text}\n`);
  });

  it('exits with 2 if there is no such user', async () => {
    const args = 'users get --name Nobody --email no@body.example'.split(' ');
    const { code, stdout, stderr } = await run(args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toBe('dawatch: Not found: no user has this name and this e-mail address\n');
  });
});

describe('users list', () => {
  it('shows a table with a header', async () => {
    expect((await run(['users', 'list'])).stdout.split('\n').length).toBeGreaterThan(4);
    const { code, stdout } = await run(['users', 'list', '--limit', '3']);
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split('\n');
    expect(lines).toHaveLength(4);
    expect(lines[0]).toMatch(/^id +name +email +app_id +assigned_wallet$/);
    expect(lines[2]).toMatch(/^[0-9a-f-]{36} {2}User 2 {2}user2@example\.com {2}101 +0x[0-9a-f]+$/);
    expect(new Set(lines.slice(1).map((line) => line.indexOf('0x'))).size).toBe(1);
  });

  it.each([
    [['users', 'list', '--limit', '0'], 'from 1 to 1000'],
    [['users', 'get', '--name', 'a', '--email', 'b'], 'not an e-mail address'],
  ])('%j exits with 2', async (args, message) => {
    const { code, stdout, stderr } = await run(args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
  });
});

describe('the token', () => {
  it('is required', async () => {
    const { code, stderr } = await cli(GET, { env: { DAWATCH_URL: lookups().url } });
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(
        /^dawatch: set DAWATCH_TOKEN or DAWATCH_ADMIN_TOKEN to a token: .*token create/,
      ),
    ]);
  });

  it('is read from DAWATCH_TOKEN first and sent as a bearer; an error names the variable of a refused token', async () => {
    const sent: unknown[] = [];
    const { url } = await serve(({ headers, url }, response) => {
      sent.push([headers.authorization, headers['x-api-key']]);
      response.end(
        url?.startsWith('/v1/credentials') ? '{"credentials":[],"next_cursor":null}' : '[]',
      );
    });
    const both = {
      DAWATCH_TOKEN: 'the-first',
      DAWATCH_ADMIN_TOKEN: 'the-second-one-of-them-0123456789',
    };
    await cli(['users', 'list', '--limit', '1', '--server', url], { env: both });
    await cli(['token', 'list', '--server', url], { env: both });
    expect(sent).toEqual([
      ['Bearer the-first', undefined],
      ['Bearer the-second-one-of-them-0123456789', undefined],
    ]);
    const { code, stderr } = await cli(GET, { env: { DAWATCH_URL: lookups().url, ...both } });
    expect([code, stderr]).toEqual([
      5,
      expect.stringMatching(/\(the token was read from DAWATCH_TOKEN; .*token create/),
    ]);
    expect(stderr).not.toContain('the-first');
  });
});
