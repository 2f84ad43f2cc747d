import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { MATRIX } from '../support/app/access-matrix.ts';
import { call, post, problemOf } from '../support/app/http-calls.ts';
import { openApp, useApp } from '../support/app/running-app.ts';
import { callWith, signInWith } from '../support/app/sessions.ts';
import { storeToken } from '../support/ledger/audit.ts';
import { rawConnection } from '../support/ledger/ledger-file.ts';
import { openWithProvider } from '../support/servers/oidc-provider.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { eventually } from '../support/until.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

const ADMIN_TOKEN = 'an-admin-token-for-tests-0123456789';
const CHECK_MS = 15_000;

async function open(setting: Partial<Parameters<typeof openApp>[0]> = {}) {
  const database = join(tempFolder(), 'ledger.db');
  const clock = new HeldClock(CHECK_MS);
  const app = await openApp({ database, clock, tuning: { alertCheckMs: 3_600_000 }, ...setting });
  onTestFinished(() => app.close());
  return { url: app.url, database, clock };
}

/** Ways to send a credential, and how it ends. */
const WAYS = [
  ['a token that is revoked', false],
  ['a session that signs out', true],
] as const;

const OF_A_PAGE = { 'x-requested-with': 'dawatch', 'sec-fetch-site': 'same-origin' };

async function openCredential(
  { url, database }: Awaited<ReturnType<typeof open>>,
  isSession: boolean,
) {
  const { token, revoke } = storeToken(database, 'admin');
  if (!isSession)
    return { headers: { authorization: `Bearer ${token}` }, end: async () => void revoke() };
  const { cookie } = await signInWith(url, token);
  const end = async () => void (await callWith(url, cookie, '/v1/session', { method: 'DELETE' }));
  return {
    headers: { cookie, ...OF_A_PAGE },
    end,
  };
}

/** Takes the role admin, as a sign-in with other claims does, which keeps the sessions. */
function degrade(database: string) {
  const db = rawConnection(database);
  db.prepare("UPDATE credentials SET role = 'operator' WHERE role = 'admin'").run();
  db.close();
}

/**
 * Sends the headers and the first byte of a body. The returned function sends the rest. An empty
 * body is sent as the last of its chunks.
 */
async function begin(
  url: string,
  [method, path]: readonly [string, string],
  headers: Record<string, string>,
  sent: string,
) {
  const { hostname, port, host } = new URL(url);
  const socket = connect(Number(port), hostname).setEncoding('latin1');
  const length =
    sent === '' ? { 'transfer-encoding': 'chunked' } : { 'content-length': sent.length };
  const wire = sent === '' ? '0\r\n\r\n' : sent;
  const own = { 'content-type': 'application/json', ...length, ...headers };
  const lines = Object.entries({ host, connection: 'close', expect: '100-continue', ...own });
  socket.write(`${method} ${path} HTTP/1.1\r\n`);
  socket.write(`${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`);
  const response = { text: '' };
  socket.on('data', (text) => {
    response.text += text;
  });
  // The server has read the headers, and waits for the body.
  await eventually(() => expect(response.text).toMatch(/^HTTP\/1.1 100 /));
  socket.write(wire.slice(0, 1));
  await call(url, '/livez');
  return async () => {
    const closed = once(socket, 'close');
    socket.write(wire.slice(1));
    await closed;
    const final = response.text.slice(response.text.lastIndexOf('HTTP/1.1'));
    const [head = '', body = ''] = final.split('\r\n\r\n');
    return { status: Number(head.split(' ')[1]), body: JSON.parse(body) };
  };
}

const ENDED = 'the credential has expired or was revoked';

const idIn = (path: string) => (path.startsWith('/v1/webhooks') ? 'callbacks' : '1');

/** Every documented request that changes something, and those that only read a body. */
const CHANGES = Object.entries(MATRIX).flatMap(([endpoint, { access, body }]) => {
  const [method = '', path = ''] = endpoint.split(' ');
  if (method === 'GET' || access === 'open') return [];
  const bodies = body === undefined ? ['{}', ''] : [JSON.stringify(body)];
  return bodies.map((sent) => [method, path.replace(/\{\w+\}/, idIn(path)), sent] as const);
});

describe('a request whose credential ends while its body arrives changes nothing', () => {
  const app = useApp({ adminToken: ADMIN_TOKEN });

  it.each(CHANGES)('%s %s %s', async (method, path, sent) => {
    const { token, revoke } = storeToken(app.database, 'admin');
    const headers = { authorization: `Bearer ${token}` };
    const finish = await begin(app.url, [method, path], headers, sent);
    revoke();
    const { status, body } = await finish();
    expect([status, body.detail]).toEqual([401, ENDED]);
  });

  const WRITE = ['POST', '/v1/submissions'] as const;
  const TRACK = '{"submission_id": "late"}';
  type Open = [server: { url: string }, headers: Record<string, string>, end: () => unknown];
  type Ending = [name: string, open: () => Promise<Open>];

  it.each<Ending>([
    [
      'a session that signs out',
      async () => {
        const world = await open({ adminToken: ADMIN_TOKEN });
        const { cookie } = await signInWith(world.url, ADMIN_TOKEN);
        const signOut = () => callWith(world.url, cookie, '/v1/session', { method: 'DELETE' });
        return [world, { cookie, ...OF_A_PAGE }, signOut];
      },
    ],
    [
      'the session of a person who loses the role',
      async () => {
        const database = join(tempFolder(), 'ledger.db');
        const server = await openWithProvider({ database });
        server.provider.person = { sub: 'ada', groups: ['admins'] };
        const { cookie = '' } = await server.signIn();
        return [server, { cookie, ...OF_A_PAGE }, () => degrade(database)];
      },
    ],
  ])('with %s', async (_, openCredentialOf) => {
    const [{ url }, headers, end] = await openCredentialOf();
    const finish = await begin(url, WRITE, headers, TRACK);
    await end();
    const { status, body } = await finish();
    expect([status, body.detail]).toEqual([401, ENDED]);
  });
});

describe.each(WAYS)('a request that waits for a submission with %s', (_, isSession) => {
  it('ends at the next check, and says nothing about the submission', async () => {
    const world = await open();
    const { headers, end } = await openCredential(world, isSession);
    await post(world.url, { submission_id: 'open' });
    const own = { 'x-api-key': [], ...headers } as Record<string, string | string[]>;
    const waiting = call(world.url, '/v1/submissions/open/wait?timeout_s=200', { headers: own });
    const held = () => eventually(() => expect(world.clock.held(CHECK_MS)).toBe(1));
    await held();
    world.clock.fire(CHECK_MS);
    await held();
    await end();
    world.clock.fire(CHECK_MS);
    const response = await waiting;
    expect(problemOf(response).status).toBe(401);
    expect(response.text).not.toContain('tracking');
    expect(world.clock.held(200_000)).toBe(0);
  });

  it('gets no result that arrives before that', async () => {
    const world = await open();
    const { headers, end } = await openCredential(world, isSession);
    await post(world.url, { submission_id: 'open' });
    const own = { 'x-api-key': [], ...headers } as Record<string, string | string[]>;
    const waiting = call(world.url, '/v1/submissions/open/wait?timeout_s=200', { headers: own });
    await eventually(() => expect(world.clock.held(200_000)).toBe(1));
    await end();
    await call(world.url, '/v1/submissions/open', { method: 'DELETE' });
    expect(problemOf(await waiting).status).toBe(401);
    expect(world.clock.held(CHECK_MS)).toBe(0);
  });
});

describe('a person who loses the role admin', () => {
  it('may keep waiting, as an operator may read', async () => {
    const world = await open();
    const { headers } = await openCredential(world, true);
    const own = { 'x-api-key': [], ...headers };
    await call(world.url, '/v1/submissions', {
      method: 'POST',
      headers: own,
      body: { submission_id: 'open' },
    });
    const waiting = call(world.url, '/v1/submissions/open/wait?timeout_s=200', { headers: own });
    const held = () => eventually(() => expect(world.clock.held(CHECK_MS)).toBe(1));
    await held();
    degrade(world.database);
    world.clock.fire(CHECK_MS);
    await held();
    world.clock.fire(200_000);
    expect((await waiting).status).toBe(200);
  });
});
