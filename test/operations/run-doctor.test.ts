import { chmodSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/operations/config/load.ts';
import { ok } from '../../src/operations/doctor/finding.ts';
import { checkMachine, runChecks } from '../../src/operations/doctor/run-doctor.ts';
import { findingsOf, settingsOf } from '../support/doctor.ts';
import { openLedger } from '../support/ledger/ledger-file.ts';
import { openReceiver } from '../support/servers/receiver.ts';
import { deadAddress, serve } from '../support/servers/upstream-server.ts';
import { tempFolder } from '../support/temp-folder.ts';

const nothingHere = () => join(tempFolder(), 'dawatch.db');

describe('the doctor', () => {
  it('checks every upstream, webhook and channel in this order and reports its progress', async () => {
    const ledger = openLedger();
    const { url: hook } = await openReceiver();
    const secret = { secret: 'whsec_x', publicKey: null };
    const fields = {
      types: ['*'],
      metadata: null,
      description: '',
      signature: 'v1' as const,
      enabled: true,
    };
    const { id } = ledger.webhooks.create({ ...fields, url: hook }, secret, 0);
    const file = join(tempFolder(), 'dawatch.yaml');
    const dead = await deadAddress();
    writeFileSync(
      file,
      `database: ${ledger.file}
upstreams: {default: {url: "${dead}", bearer: abc}, second: {url: "${dead}"}}
webhooks: {allow: [127.0.0.0/8], allow_http: true}
channels: {ops: {type: slack, url: "${dead}/services/T0/B0/x"}}`,
    );
    const { findings, progress } = await findingsOf(loadConfig({ env: {}, file }));
    expect([...new Set(findings.map(({ name }) => name))]).toEqual([
      'node',
      ...(process.platform === 'linux' ? ['open_files'] : []),
      'settings',
      'credentials',
      'upstream.default',
      'upstream.second',
      'users.default',
      'ledger',
      'ledger.rights',
      'ledger.wal',
      'ledger.integrity',
      'disk',
      `webhook.${id}`,
      'channel.ops',
    ]);
    expect(progress.ended.toSorted()).toEqual(progress.started.toSorted());
  });

  it('creates no ledger', async () => {
    const file = nothingHere();
    const { named } = await findingsOf(settingsOf({ DAWATCH_DATABASE: file }));
    expect(named('ledger')).toMatchObject([{ status: 'ok' }]);
    expect(named('ledger.integrity')).toEqual([]);
    expect(readdirSync(join(file, '..'))).toEqual([]);
  });

  it('shows neither a key that an upstream quotes nor a password', async () => {
    const key = 'the-key-of-the-upstream';
    const { url } = await serve((_request, response) =>
      response.writeHead(503).end(`bad key ${key}`),
    );
    const { findings, named } = await findingsOf(
      settingsOf({
        DAWATCH_UPSTREAM_URL: url,
        DAWATCH_UPSTREAM_API_KEY: key,
        DAWATCH_DATABASE: nothingHere(),
      }),
    );
    expect(named('upstream.default')[0]?.message).toContain('bad key [redacted]');
    expect(JSON.stringify(findings)).not.toContain(key);
  });

  it('masks passwords in addresses in every spelling', async () => {
    const url = (await deadAddress()).replace('http://', 'redis://user:100%25sure%@');
    const { findings, named } = await findingsOf(
      settingsOf({ DAWATCH_REDIS_URL: url, DAWATCH_DATABASE: nothingHere() }),
    );
    expect(named('redis')).toMatchObject([{ status: 'problem' }]);
    expect(JSON.stringify(findings)).not.toMatch(/sure/);
  });

  it('checks the token for user lookups with a user that does not exist', async () => {
    const responses: Record<string, number> = {
      '/users/get_user': 401,
      '/v1/get_submission_info': 500,
    };
    const { url, requests } = await serve((request, response) =>
      response
        .writeHead(responses[request.url?.split('?')[0] ?? ''] ?? 404)
        .end('{"error":"record not found"}'),
    );
    const env = {
      DAWATCH_UPSTREAM_URL: url,
      DAWATCH_UPSTREAM_BEARER: 'the-token',
      DAWATCH_DATABASE: nothingHere(),
    };
    expect((await findingsOf(settingsOf(env))).named('users.default')).toMatchObject([
      { status: 'problem', action: expect.stringMatching(/DAWATCH_UPSTREAM_BEARER/) },
    ]);
    expect(requests.find(({ url: path }) => path?.startsWith('/users'))?.url).toContain(
      'dawatch.invalid',
    );
    responses['/users/get_user'] = 500;
    expect((await findingsOf(settingsOf(env))).named('users.default')).toMatchObject([
      { status: 'ok' },
    ]);
  });
});

describe('reports the settings', () => {
  const settings = async (env: Record<string, string>) =>
    (await findingsOf(settingsOf({ DAWATCH_DATABASE: nothingHere(), ...env }), { env })).named(
      'settings',
    );

  it('without an upstream', async () => {
    expect(await settings({})).toMatchObject([
      { status: 'ok' },
      { status: 'problem', message: 'no upstream is configured' },
    ]);
  });

  it('with an empty key', async () => {
    const DAWATCH_UPSTREAM_URL = await deadAddress();
    expect(await settings({ DAWATCH_UPSTREAM_URL, DAWATCH_UPSTREAM_API_KEY: '' })).toMatchObject([
      { status: 'ok' },
      { status: 'warning', message: expect.stringMatching(/^DAWATCH_UPSTREAM_API_KEY is empty/) },
    ]);
  });

  it('in a file that everyone may read, if it contains a secret', async () => {
    const file = join(tempFolder(), 'dawatch.yaml');
    const upstream = `database: ${nothingHere()}\nupstreams: {default: {url: "${await deadAddress()}"}, spare: {api_key: k}}\n`;
    writeFileSync(file, upstream);
    const found = async () =>
      (await findingsOf(loadConfig({ env: {}, file }))).named('settings').slice(1);
    const withoutUrl = { status: 'problem', message: 'upstreams.spare has no url' };
    expect(await found()).toMatchObject([
      withoutUrl,
      { status: 'warning', action: expect.stringMatching(/^chmod/) },
    ]);
    chmodSync(file, 0o600);
    expect(await found()).toMatchObject([withoutUrl]);
    writeFileSync(file, upstream.replace('{api_key: k}', '{}'));
    chmodSync(file, 0o644);
    expect(await found()).toMatchObject([withoutUrl]);
    const secretFile = join(tempFolder(), 'key');
    writeFileSync(secretFile, 'k');
    writeFileSync(file, upstream.replace('{api_key: k}', `{api_key_file: ${secretFile}}`));
    expect(await found(), 'the secret is in another file').toMatchObject([withoutUrl]);
  });

  it.each([
    [{}, 'ok', /first start creates a service key/],
    [{ DAWATCH_HOST: '0.0.0.0' }, 'problem', /refuses to listen on 0\.0\.0\.0/],
    [{ DAWATCH_HOST: '0.0.0.0', DAWATCH_API_KEY: '9w3kZ0rT-vQm7fLxB2sYhD' }, 'ok', /^set$/],
  ])('and credentials: %o', async (env, status, message) => {
    const { named } = await findingsOf(settingsOf({ DAWATCH_DATABASE: nothingHere(), ...env }));
    expect(named('credentials')).toMatchObject([
      { status, message: expect.stringMatching(message) },
    ]);
  });
});

it('names the version of Node, and reports a low limit of open files', () => {
  const found = (openFiles: number | 'unlimited') =>
    checkMachine({ nodeVersion: '22.19.0', openFiles }).map(({ status, message }) => [
      status,
      message,
    ]);
  expect(found(1_024)).toEqual([
    ['ok', 'Node 22.19.0'],
    ['warning', 'limit of 1024 open files and connections'],
  ]);
  expect(found('unlimited')[1]?.[0]).toBe('ok');
});

describe('a check', () => {
  const run = (check: Parameters<typeof runChecks>[0][number]) =>
    runChecks([check], () => undefined);

  it('that hangs is stopped at its time limit, and its signal aborts', async () => {
    let isAborted = false;
    const findings = await run({
      name: 'slow',
      limitMs: 20,
      run: (signal) => {
        signal.addEventListener('abort', () => (isAborted = true));
        return new Promise(() => undefined);
      },
    });
    expect(findings).toMatchObject([
      { name: 'slow', status: 'warning', message: 'not completed within 0.02 s' },
    ]);
    expect(isAborted).toBe(true);
  });

  it('that fails hides no other finding', async () => {
    const failing = {
      name: 'odd',
      limitMs: 1_000,
      run: () => {
        throw new Error('odd');
      },
    };
    const right = { name: 'right', limitMs: 1_000, run: () => [ok('right', 'fine')] };
    expect(await runChecks([failing, right], () => undefined)).toMatchObject([
      { name: 'odd', status: 'problem' },
      { name: 'right', status: 'ok' },
    ]);
  });
});
