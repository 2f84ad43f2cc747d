import {
  chmodSync,
  closeSync,
  linkSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { heartbeatCheck } from '../../src/alerts/heartbeat.ts';
import { redisCheck } from '../../src/redis/doctor-redis.ts';
import { checkDisk, runDoctor } from '../../src/wiring/doctor.ts';
import { loadConfig } from '../../src/wiring/settings.ts';
import { call } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN, AS_ADMIN } from '../support/app/lookups.ts';
import { appForTest } from '../support/app/running-app.ts';
import { openLedger, rawConnection, trackRequests } from '../support/ledger/ledger-file.ts';
import { cli } from '../support/processes/cli.ts';
import { CLIENT, configuredWith, openOidcProvider } from '../support/servers/oidc-provider.ts';
import { openReceiver } from '../support/servers/receiver.ts';
import { openSmtpReceiver } from '../support/servers/smtp-receiver.ts';
import { deadAddress, KEY, serve } from '../support/servers/upstream-server.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { eventually } from '../support/until.ts';

const NOT_FOUND = JSON.stringify({ state: 'ERROR', error: 'record not found' });
const SECRET_PATH = 'T0p-Secret-Path';

/** Returns the findings with these settings, by name. None of them contains a secret. */
async function examine(settings: Record<string, unknown>, { full = false, limitMs = 60_000 } = {}) {
  const file = join(tempFolder(), 'dawatch.yaml');
  writeFileSync(file, JSON.stringify({ database: join(tempFolder(), 'dawatch.db'), ...settings }));
  chmodSync(file, 0o600);
  const loaded = loadConfig({ env: {}, file });
  const features = [heartbeatCheck, redisCheck];
  const findings = await runDoctor({ loaded, now: Date.now(), full, limitMs, features });
  for (const { status, action } of findings) expect(action === null).toBe(status === 'ok');
  for (const secret of [KEY, SECRET_PATH, 'the-password'])
    expect(JSON.stringify(findings)).not.toContain(secret);
  return {
    findings,
    named: (name: string) => findings.filter((finding) => finding.name === name),
  };
}

async function upstream(
  url: string,
  { api_key = KEY as string | undefined, limitMs = 60_000 } = {},
) {
  const { named } = await examine({ upstreams: { default: { url, api_key } } }, { limitMs });
  return [...named('upstream.default'), ...named('clock.default')];
}

const respondWith =
  (status: number, body: string, headers: Record<string, string> = {}): RequestListener =>
  (_request, response) =>
    response.writeHead(status, headers).end(body);

it('dawatch doctor shows each finding with its solution, and exits with the worst level', async () => {
  const { url } = await serve(respondWith(500, NOT_FOUND));
  const env = {
    DAWATCH_DATABASE: join(tempFolder(), 'dawatch.db'),
    DAWATCH_UPSTREAM_API_KEY: KEY,
    DAWATCH_UPSTREAM_URL: url,
  };
  const well = await cli(['doctor'], { env });
  expect([well.code, well.stderr]).toEqual([0, '']);
  expect(well.stdout).toMatch(/^ok +upstream\.default +127.* works and accepts the key$/m);
  expect(well.stdout).toMatch(/\nno problems found\n$/);
  const bad = await cli(['doctor'], { env: { ...env, DAWATCH_UPSTREAM_URL: null } });
  expect(bad.code).toBe(2);
  expect(bad.stdout).toMatch(/^problem +settings +no upstream is configured\n +do: set/m);
  expect(bad.stdout).toMatch(/\n1 problem, 0 warnings\n$/);
  const invalid = await cli(['doctor', '--json'], { env: { ...env, DAWATCH_PORT: 'many' } });
  expect([invalid.code, JSON.parse(invalid.stdout)]).toMatchObject([
    2,
    { status: 'problem', checks: [{ message: expect.stringMatching(/^server\.port must be/) }] },
  ]);
});

it('the doctor logs in at a mail server without sending a mail', async () => {
  const { url, mails } = await openSmtpReceiver({ login: { user: 'dawatch', password: 'right' } });
  const mail = { type: 'email', tls: 'off', from: 'a@b.example', to: ['c@d.example'] };
  const { findings } = await examine({
    channels: {
      well: { ...mail, smtp_url: url },
      wrong: { ...mail, smtp_url: url.replace('right', 'the-password') },
      clear: { ...mail, smtp_url: url, tls: 'require' },
    },
  });
  const channels = findings.filter(({ name }) => name.startsWith('channel.'));
  expect(channels.map(({ name, status, message }) => `${name} ${status} ${message}`)).toEqual([
    expect.stringMatching(/^channel\.well ok .* accepts the connection; nothing is sent$/),
    expect.stringMatching(/^channel\.wrong problem .*: the mail server responded with 535 to AUTH/),
    expect.stringMatching(/^channel\.clear problem .*: the mail server offers no TLS/),
  ]);
  expect(mails).toEqual([]);
});

it('the doctor checks every upstream, webhook and channel, calling only the address of the heartbeat', async () => {
  const ledger = openLedger();
  const receiver = await openReceiver();
  const dead = await deadAddress();
  const secret = 'whsec_x';
  const fields = { types: ['*'], metadata: null, description: '' };
  const create = (url: string, enabled: boolean) =>
    ledger.webhooks.create({ ...fields, url, enabled }, secret, 0).id;
  const reachable = create(`${receiver.url}/${SECRET_PATH}`, true);
  const unreachable = create(`${dead}/${SECRET_PATH}`, true);
  const refused = create('http://10.0.0.1/', true);
  create(`${dead}/disabled`, false);
  const { findings, named } = await examine({
    database: ledger.file,
    upstreams: { default: { url: dead, bearer: 'abc' }, second: { url: dead } },
    webhooks: { allow: ['127.0.0.0/8'], allow_http: true },
    channels: {
      ops: { type: 'slack', url: `${receiver.url}/${SECRET_PATH}` },
      mail: {
        type: 'email',
        smtp_url: dead.replace('http://', 'smtp://user:the-password@'),
        from: 'a@b.example',
        to: ['c@d.example'],
      },
    },
    redis: { url: dead.replace('http://', 'redis://user:the-password@') },
    heartbeat: { url: `${receiver.url}/${SECRET_PATH}` },
  });
  expect(findings.map(({ name, status }) => `${name} ${status}`)).toEqual([
    'upstream.default problem',
    'upstream.second problem',
    'users.default warning',
    'ledger ok',
    'disk ok',
    'heartbeat ok',
    'redis problem',
    `webhook.${refused} problem`,
    `webhook.${unreachable} warning`,
    `webhook.${reachable} ok`,
    'channel.ops ok',
    'channel.mail warning',
  ]);
  expect(named(`webhook.${refused}`)[0]?.action).toContain('webhooks.allow_http');
  expect(named('channel.mail')[0]?.action).toContain('channels.mail');
  const paths = receiver.requests.map(({ path }) => path).filter((path) => path !== '/');
  expect(paths).toEqual([`/${SECRET_PATH}`]);
});

it('the doctor names the newest error of receivers that are reachable', async () => {
  const receiver = await openReceiver({ status: 500 });
  const database = join(tempFolder(), 'dawatch.db');
  const webhooks = { allow: ['127.0.0.0/8'], allow_http: true };
  const channels = { ops: { type: 'slack' as const, url: `${receiver.url}/${SECRET_PATH}` } };
  const app = await appForTest({ database, adminToken: ADMIN_TOKEN, webhooks, channels });
  const send = async (path: string, body?: object) =>
    JSON.parse((await call(app.url, path, { method: 'POST', headers: AS_ADMIN, body })).text);
  const { id } = await send('/v1/webhooks', { url: `${receiver.url}/${SECRET_PATH}` });
  await send(`/v1/webhooks/${id}/test`);
  await send('/v1/channels/ops/test');
  const host = receiver.url.replace('http://', '');
  const messages = async () => {
    const { named } = await examine({ database, webhooks, channels });
    return [`webhook.${id}`, 'channel.ops'].map((name) => named(name)[0]);
  };
  const message = expect.stringMatching(
    `^${host} is reachable; all attempts since \\S+Z failed: responded with 500$`,
  );
  await eventually(async () =>
    expect(await messages()).toMatchObject([
      { status: 'warning', message, action: expect.stringContaining(`destination=webhook:${id}`) },
      { status: 'warning', message, action: expect.stringContaining('destination=channel:ops') },
    ]),
  );
});

it('the doctor sends a heartbeat, and reads the response', async () => {
  const receiver = await openReceiver({ body: 'OK (not found)' });
  const { named } = await examine({ heartbeat: { url: `${receiver.url}/${SECRET_PATH}` } });
  expect(named('heartbeat')).toMatchObject([
    { status: 'problem', message: expect.stringMatching(/ responded with 200 and "not found"$/) },
  ]);
});

describe('an upstream', () => {
  it('that finds nothing under a random id works, and accepted the key', async () => {
    const { url, requests } = await serve(respondWith(500, NOT_FOUND));
    expect(await upstream(url)).toMatchObject([
      { status: 'ok', message: `${new URL(url).host} works and accepts the key` },
    ]);
    expect(requests).toHaveLength(1);
    expect(requests[0]?.url).toMatch(/^\/v1\/get_submission_info\?submission_id=[0-9a-f-]{36}$/);
    expect(requests[0]?.headers['x-api-key']).toBe(KEY);
  });

  const page = respondWith(200, '<html>');
  const invalid = respondWith(406, '{"error":"invalid submission id"}');
  it.each<[string, RequestListener, 'warning' | 'problem', RegExp, RegExp]>([
    [
      'that refuses the key',
      respondWith(401, `{"error":"bad ${KEY}"}`),
      'problem',
      /refuses the key/,
      /upstreams\.default\.api_key/,
    ],
    ['that requests a lower rate', respondWith(429, ''), 'warning', /rate limiting/, /budget/],
    [
      'behind a firewall that refuses the request',
      respondWith(403, '<html>'),
      'problem',
      /a proxy or firewall refused the request: HTTP 403/,
      /firewalls and proxies/,
    ],
    ['that redirects', respondWith(302, ''), 'problem', /302/, /upstreams\.default\.url/],
    ['behind a proxy', page, 'problem', /not respond like/, /proxies/],
    ['that fails', respondWith(503, `${KEY} bad`), 'problem', /\[redacted\] bad/, /runs/],
    ['that refuses UUIDs', invalid, 'warning', /invalid submission id/, /UUIDs/],
  ])('%s', async (_what, respond, status, message, action) => {
    const [found] = await upstream((await serve(respond)).url);
    expect(found).toMatchObject({
      status,
      message: expect.stringMatching(message),
      action: expect.stringMatching(action),
    });
  });

  it('that never responds is abandoned at the time limit', async () => {
    const silent = await serve(() => undefined);
    expect((await upstream(silent.url, { limitMs: 100 }))[0]?.message).toMatch(/within 0.1 s/);
  });

  it('passes without a key if it requires none, and fails if it requires one', async () => {
    const open = await serve(respondWith(500, NOT_FOUND));
    const closed = await serve(respondWith(401, 'Missing API key'));
    const { named } = await examine({
      upstreams: { default: { url: open.url }, closed: { url: closed.url } },
    });
    expect(named('upstream.default')).toMatchObject([{ status: 'warning' }]);
    expect(named('upstream.closed')).toMatchObject([
      { status: 'problem', message: expect.stringMatching(/none is set/) },
    ]);
  });

  it.each<[string, number, string, RegExp]>([
    ['behind', 20_000, 'warning', /this clock is \d\d s behind the clock of default/],
    ['ahead', -20_000, 'warning', /this clock is \d\d s ahead of the clock of default/],
    ['far behind', 3_600_000, 'problem', /3\d{3} s behind/],
  ])('shows a clock that is %s', async (_what, offMs, status, message) => {
    const { url } = await serve((_request, response) => {
      const date = new Date(Date.now() + offMs).toUTCString();
      response.writeHead(500, { date }).end(NOT_FOUND);
    });
    const [, clock] = await upstream(url);
    expect(clock).toMatchObject({ status, message: expect.stringMatching(message) });
  });

  it.each([
    [404, 'ok'],
    [401, 'problem'],
    [503, 'warning'],
  ])('that responds with %i to the lookup of a user that cannot exist', async (code, status) => {
    const { url, requests } = await serve((request, response) =>
      request.url?.startsWith('/users')
        ? response.writeHead(code).end('{"error":"record not found"}')
        : response.writeHead(500).end(NOT_FOUND),
    );
    const { named } = await examine({ upstreams: { default: { url, bearer: 'the-token' } } });
    expect(named('users.default')).toMatchObject([{ status }]);
    expect(requests.some(({ url: path }) => path?.includes('dawatch.invalid'))).toBe(true);
  });
});

describe('the provider', () => {
  const settings = (issuer: string, public_url: string, scopes: string[]) => ({
    server: { public_url },
    oidc: { issuer, client_id: CLIENT.id, scopes, roles: { admin: ['admins'] } },
  });

  it('responds', async () => {
    const provider = await openOidcProvider({
      redirectUri: 'https://da.example/v1/session/oidc/callback',
    });
    const { named } = await examine(settings(provider.url, 'https://da.example/', ['openid']));
    expect(named('oidc')).toMatchObject([
      { status: 'ok', message: expect.stringContaining('https://da.example/v1/session/oidc/call') },
    ]);
  });

  it('that is down, or has another name, is a problem', async () => {
    const redirectUri = 'https://da.example/v1/session/oidc/callback';
    const { url } = await openOidcProvider({ redirectUri });
    for (const issuer of [await deadAddress(), url.replace('127.0.0.1', 'localhost')])
      expect(
        (await examine(settings(issuer, 'https://da.example', ['openid']))).named('oidc'),
      ).toMatchObject([{ status: 'problem' }]);
  });

  it('at which nobody can sign in is a problem', async () => {
    const redirectUri = 'https://da.example/v1/session/oidc/callback';
    const provider = await openOidcProvider({ redirectUri });
    for (const changes of [
      { authorization_endpoint: undefined },
      { id_token_signing_alg_values_supported: [] },
    ]) {
      provider.fault = configuredWith(provider, changes);
      const { named } = await examine(settings(provider.url, 'https://da.example', ['openid']));
      expect(named('oidc')).toMatchObject([
        { status: 'problem', message: expect.stringContaining('people cannot sign in') },
      ]);
    }
  });
});

describe('the ledger', () => {
  const closedLedger = (count = 10): string => {
    const ledger = openLedger();
    ledger.track(trackRequests(count), 0);
    ledger.close();
    return ledger.file;
  };
  const ledgerFindings = async (database: string, full = false) =>
    (await examine({ database }, { full })).findings.filter(({ name }) =>
      name.startsWith('ledger'),
    );

  it('that is closed is not changed by a byte, and one that does not exist is not created', async () => {
    const file = closedLedger();
    const before = readFileSync(file);
    expect(await ledgerFindings(file, true)).toMatchObject([
      { name: 'ledger', status: 'ok' },
      { name: 'ledger.integrity', status: 'ok' },
    ]);
    expect(readFileSync(file).equals(before)).toBe(true);
    const folder = tempFolder();
    expect(await ledgerFindings(join(folder, 'data', 'dawatch.db'), true)).toMatchObject([
      { status: 'ok', message: expect.stringMatching(/first start creates it/) },
    ]);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('that was removed, or has a second name, is a problem', async () => {
    const removed = closedLedger();
    writeFileSync(`${removed}.primary`, '');
    rmSync(removed);
    const linked = closedLedger();
    linkSync(linked, `${linked}.link`);
    for (const [file, message] of [
      [removed, /no ledger at .* is left of one/],
      [linked, /a hard link/],
    ] as const)
      expect(await ledgerFindings(file)).toMatchObject([
        { name: 'ledger', status: 'problem', message: expect.stringMatching(message) },
      ]);
  });

  it('that is still empty is no damaged one', async () => {
    const empty = join(tempFolder(), 'dawatch.db');
    writeFileSync(empty, '', { mode: 0o600 });
    expect(await ledgerFindings(empty, true)).toMatchObject([
      { name: 'ledger', status: 'ok', message: expect.stringMatching(/first start initializes/) },
    ]);
  });

  it('whose last sync failed is replaced by the next start', async () => {
    const file = closedLedger();
    writeFileSync(`${file}.sync-failed`, '');
    expect((await ledgerFindings(file))[1]).toMatchObject({
      status: 'warning',
      message: expect.stringMatching(/the last sync .* failed/),
    });
  });

  it.each(['user_version = 999', 'application_id = 7'])(
    'of a newer dawatch or another program (%s) is not replaced by a backup',
    async (pragma) => {
      const file = closedLedger();
      const db = rawConnection(file);
      db.pragma(pragma);
      db.close();
      chmodSync(file, 0o644);
      const findings = await ledgerFindings(file);
      expect(findings).toMatchObject([{ name: 'ledger', status: 'problem' }]);
      expect(findings[0]?.action).not.toMatch(/restore|chmod/);
    },
  );

  it('that is no database, or cannot be created, is a problem', async () => {
    const file = join(tempFolder(), 'dawatch.db');
    writeFileSync(file, 'no database '.repeat(1_000), { mode: 0o600 });
    expect((await ledgerFindings(file))[0]).toMatchObject({
      status: 'problem',
      message: expect.stringMatching(/damaged/),
    });
    expect((await ledgerFindings(join(file, 'dawatch.db')))[0]).toMatchObject({
      status: 'problem',
    });
  });

  it('with an overwritten page, a text that is not JSON or a hash that is not hexadecimal, is damaged', async () => {
    const overwritten = closedLedger(2_000);
    const descriptor = openSync(overwritten, 'r+');
    const offset = Math.floor(statSync(overwritten).size / 4_096 / 2) * 4_096;
    writeSync(descriptor, Buffer.alloc(4_096, 0xa5), 0, 4_096, offset);
    closeSync(descriptor);
    const unreadable = closedLedger();
    const db = rawConnection(unreadable);
    db.pragma('ignore_check_constraints = ON');
    db.exec("DROP TRIGGER history_is_append_only; UPDATE history SET response = '{'");
    db.close();
    const withHash = closedLedger();
    const other = rawConnection(withHash);
    other.exec(
      `DROP TRIGGER history_is_append_only; UPDATE history SET response = '{"data":{"block_hash":"0xg1"}}'`,
    );
    other.close();
    for (const file of [overwritten, unreadable, withHash])
      expect((await ledgerFindings(file, true)).at(-1)).toMatchObject({
        name: 'ledger.integrity',
        status: 'problem',
        message: expect.stringMatching(/is damaged/),
        action: expect.stringMatching(/backup/),
      });
  });
});

it.each([
  [50e6, 'problem'],
  [500e6, 'warning'],
  [5e9, 'ok'],
])('a disk with %i bytes left is reported as %s', (freeBytes, status) => {
  const file = join(tempFolder(), 'not', 'there', 'dawatch.db');
  expect(checkDisk(file, () => ({ bavail: freeBytes / 1_000, bsize: 1_000 })).status).toBe(status);
});
