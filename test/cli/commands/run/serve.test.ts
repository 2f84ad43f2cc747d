import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { call } from '../../../support/app/http-calls.ts';
import { API_KEY } from '../../../support/app/running-app.ts';
import { cli, outputOf, startCli } from '../../../support/processes/cli.ts';
import { tempFolder } from '../../../support/temp-folder.ts';
import { eventually } from '../../../support/until.ts';

/** Starts `dawatch serve` and resolves once it listens. */
async function serve(env: Record<string, string | null>) {
  const { child, stop } = startCli(['serve'], {
    env: { DAWATCH_UPSTREAM_URL: 'http://127.0.0.1:1', DAWATCH_PORT: '0', ...env },
  });
  const output = outputOf(child);
  const url = await eventually(() => {
    const found = /"url":"([^"]+)"/.exec(output.stdout)?.[1];
    if (found === undefined) throw new Error(`not started: ${output.stderr}`);
    return found;
  });
  return { url, output, stop };
}

it('prints a new key once, only on stderr, accepts it after a restart, and exits with 0 at SIGTERM and SIGINT', async () => {
  const folder = join(tempFolder(), 'data');
  const database = join(folder, 'ledger.db');
  const keyless = { DAWATCH_DATABASE: database };
  const first = await serve(keyless);
  const key =
    /export DAWATCH_API_KEY=(dawatch_service_[\w-]{43})\n/.exec(first.output.stderr)?.[1] ?? '';
  const request = (url: string) => call(url, '/v1/submissions', { headers: { 'x-api-key': key } });
  expect((await request(first.url)).status).toBe(200);
  expect(await first.stop('SIGTERM')).toBe(0);
  expect(first.output.stderr.split(key)).toHaveLength(2);
  expect(first.output.stdout).not.toContain(key);
  for (const line of first.output.stdout.trimEnd().split('\n'))
    expect(JSON.parse(line)).toHaveProperty('event');
  const secret = key.slice('dawatch_service_'.length);
  for (const name of readdirSync(folder))
    expect(readFileSync(join(folder, name)).toString('latin1'), name).not.toContain(secret);

  const second = await serve(keyless);
  expect((await request(second.url)).status).toBe(200);
  expect(await second.stop('SIGINT')).toBe(0);
  expect(second.output.stderr).toBe('');
});

it('writes neither the configured key nor the key of the upstream anywhere', async () => {
  const keys = {
    DAWATCH_SERVICE_KEY: 'the-key-of-the-clients-0123456789',
    DAWATCH_UPSTREAM_API_KEY: 'the-key-of-the-upstream',
  };
  const { url, output, stop } = await serve({
    ...keys,
    DAWATCH_DATABASE: join(tempFolder(), 'l.db'),
    DAWATCH_LOG_LEVEL: 'trace',
  });
  await call(url, '/v1/submissions?limit=x', {
    headers: { 'x-api-key': keys.DAWATCH_SERVICE_KEY },
  });
  expect(await stop('SIGTERM')).toBe(0);
  for (const key of Object.values(keys)) expect(output.stdout + output.stderr).not.toContain(key);
});

describe('does not start', () => {
  it('without an upstream, and states how to configure one', async () => {
    const { code, stdout, stderr } = await cli(['serve'], {
      env: { DAWATCH_DATABASE: join(tempFolder(), 'l.db') },
    });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('DAWATCH_UPSTREAM_URL');
    expect(stderr).toContain('npx dawatch demo');
  });

  it('with invalid settings, and lists all of them with their sources, but without secrets', async () => {
    const file = join(tempFolder(), 'bad.yaml');
    writeFileSync(file, 'webhooks: {allow_http: -1}\nnonsense: 1\n');
    const env = {
      DAWATCH_PORT: 'eighty',
      DAWATCH_SERVICE_KEY: 'too-short',
      DAWATCH_UPSTREAM_URL: 'ftp://upstream',
    };
    const { code, stdout, stderr } = await cli(['serve', '--config', file], { env });
    expect([code, stdout]).toEqual([2, '']);
    for (const [name, source] of [
      ['server.port', 'DAWATCH_PORT'],
      ['auth.service_key', 'DAWATCH_SERVICE_KEY'],
      ['upstreams.default.url', 'DAWATCH_UPSTREAM_URL'],
      ['webhooks.allow_http', `${file}:1`],
    ])
      expect(stderr).toMatch(new RegExp(`${name} must .+ \\(${source}\\)`));
    expect(stderr).toContain(`nonsense is not a setting (${file}:2)`);
    expect(stderr).not.toContain('too-short');
  });

  const MISSING = '/nowhere/dawatch.yaml';
  it.each([
    ['a missing settings file', { DAWATCH_CONFIG: MISSING }, MISSING],
    ['a ledger that cannot be created', { DAWATCH_DATABASE: '/dev/null/l.db' }, '/dev/null/l.db'],
    ['a public address', { DAWATCH_HOST: '0.0.0.0' }, 'set DAWATCH_SERVICE_KEY'],
  ])('with %s', async (_, env, message) => {
    const database = {
      DAWATCH_DATABASE: join(tempFolder(), 'l.db'),
      DAWATCH_UPSTREAM_URL: 'http://127.0.0.1:1',
    };
    const { code, stderr } = await cli(['serve'], { env: { ...database, ...env } });
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });
});

it('names the setting to change if the port is in use', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  onTestFinished(() => void other.close());
  const { port } = other.address() as AddressInfo;
  const env = {
    DAWATCH_SERVICE_KEY: API_KEY,
    DAWATCH_UPSTREAM_URL: 'http://127.0.0.1:1',
    DAWATCH_PORT: String(port),
  };
  expect(await cli(['serve'], { cwd: tempFolder(), env })).toMatchObject({
    code: 2,
    stderr: `dawatch: cannot listen on 127.0.0.1:${port}: the port is in use; stop the other process, or set another port with DAWATCH_PORT or server.port\n`,
  });
});
