import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { call, post, problemOf } from '../support/app/http-calls.ts';
import { appForTest, type openApp } from '../support/app/running-app.ts';
import { callWith, signInWith } from '../support/app/sessions.ts';
import { storeToken } from '../support/ledger/audit.ts';
import { rawConnection } from '../support/ledger/ledger-file.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { eventually } from '../support/until.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

const CHECK_MS = 15_000;

async function open(setting: Partial<Parameters<typeof openApp>[0]> = {}) {
  const database = join(tempFolder(), 'ledger.db');
  const clock = new HeldClock(CHECK_MS);
  const app = await appForTest({
    database,
    clock,
    tuning: { alertCheckMs: 3_600_000 },
    ...setting,
  });
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

/** Sends the headers and the first byte of a body. The returned function sends the rest. */
async function begin(url: string, path: string, headers: Record<string, string>, body: string) {
  const { hostname, port, host } = new URL(url);
  const socket = connect(Number(port), hostname).setEncoding('latin1');
  const own = { 'content-type': 'application/json', 'content-length': body.length, ...headers };
  const lines = Object.entries({ host, connection: 'close', expect: '100-continue', ...own });
  socket.write(`POST ${path} HTTP/1.1\r\n`);
  socket.write(`${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`);
  let received = '';
  socket.on('data', (text) => {
    received += text;
  });
  // The server has read the headers, and waits for the body.
  await eventually(() => expect(received).toMatch(/^HTTP\/1.1 100 /));
  socket.write(body.slice(0, 1));
  return async () => {
    const closed = once(socket, 'close');
    socket.write(body.slice(1));
    await closed;
    return received.slice(received.lastIndexOf('HTTP/1.1'));
  };
}

it.each(WAYS)(
  'a request whose body arrives after the end of %s changes nothing',
  async (_, isSession) => {
    const world = await open();
    const { headers, end } = await openCredential(world, isSession);
    const body = JSON.stringify({ name: 'late', role: 'admin' });
    const finish = await begin(world.url, '/v1/credentials', headers, body);
    await end();
    const response = await finish();
    expect(response).toMatch(/^HTTP\/1.1 401 /);
    expect(response).toContain('the credential has expired or was revoked');
  },
);

/** A request that waits for a submission, with a credential. */
async function openWaiting(isSession: boolean) {
  const world = await open();
  const { headers, end } = await openCredential(world, isSession);
  await post(world.url, { submission_id: 'open' });
  const path = '/v1/submissions/open/wait?timeout_s=200';
  const waiting = call(world.url, path, { headers: { 'x-api-key': [], ...headers } });
  const held = () => eventually(() => expect(world.clock.held(CHECK_MS)).toBe(1));
  await held();
  return { ...world, end, waiting, held };
}

describe.each(WAYS)('a request that waits for a submission with %s', (_, isSession) => {
  it('ends at the next check, and says nothing about the submission', async () => {
    const { clock, end, waiting, held } = await openWaiting(isSession);
    clock.fire(CHECK_MS);
    await held();
    await end();
    clock.fire(CHECK_MS);
    const response = await waiting;
    expect(problemOf(response).status).toBe(401);
    expect(response.text).not.toContain('tracking');
    expect(clock.held(200_000)).toBe(0);
  });

  it('gets no result that arrives before that', async () => {
    const { url, clock, end, waiting } = await openWaiting(isSession);
    await end();
    await call(url, '/v1/submissions/open', { method: 'DELETE' });
    expect(problemOf(await waiting).status).toBe(401);
    expect(clock.held(CHECK_MS)).toBe(0);
  });
});

it('a person who loses the role admin may keep waiting, as an operator may read', async () => {
  const { database, clock, waiting, held } = await openWaiting(true);
  degrade(database);
  clock.fire(CHECK_MS);
  await held();
  clock.fire(200_000);
  expect((await waiting).status).toBe(200);
});
