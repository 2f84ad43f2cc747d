import { expect, it } from 'vitest';
import { call, post, problemOf } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { appForTest } from '../support/app/running-app.ts';
import { callWith, signInWith } from '../support/app/sessions.ts';
import { rawConnection } from '../support/ledger/ledger-file.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

/** An app, and another program that can lock its ledger against writes. */
async function open() {
  const database = `${tempFolder()}/ledger.db`;
  // However slow the machine, the limit for locks does not pass.
  const clock = new HeldClock();
  clock.elapsed = () => 0;
  let log = '';
  const app = await appForTest({
    database,
    clock,
    adminToken: ADMIN_TOKEN,
    onLog: (line) => {
      log += line;
    },
  });
  const other = rawConnection(database);
  const lock = () => other.exec('BEGIN IMMEDIATE');
  const unlock = () => other.exec('ROLLBACK');
  return { url: app.url, lock, unlock, log: () => log };
}

it('another program that has locked the ledger delays tracking, and stops nothing else', async () => {
  const { url, lock, unlock } = await open();
  lock();
  const tracked = post(url, { submission_ids: ['a', 'b'] });
  for (let n = 0; n < 20; n++) expect((await call(url, '/livez')).status).toBe(200);
  expect((await call(url, '/v1/submissions')).status).toBe(200);
  unlock();
  const response = await tracked;
  expect([response.status, response.text]).toEqual([202, expect.stringContaining('"accepted":2')]);
});

it('another program that has locked the ledger is named to callers and in the log, and no change of a credential is stored', async () => {
  const { url, lock, unlock, log } = await open();
  const admin = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const send = (method: string, path: string, body?: object) =>
    callWith(url, undefined, path, { method, headers: admin, body });
  const create = () => send('POST', '/v1/credentials', { name: 'billing', role: 'service' });
  const { id, secret } = JSON.parse((await create()).text);
  const { cookie } = await signInWith(url, secret);
  lock();
  for (const refused of [
    await create(),
    await send('DELETE', `/v1/credentials/${id}`),
    await send('POST', '/v1/session'),
    await callWith(url, cookie, '/v1/session', { method: 'DELETE' }),
  ]) {
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '5']);
    expect(problemOf(refused).detail).toBe(
      'another program has locked the ledger: nothing of the request was stored',
    );
    expect(refused.text).not.toMatch(/dawatch_|\.db/);
    expect(refused.headers['set-cookie']).toBeUndefined();
  }
  const headers = { 'x-api-key': secret };
  expect((await call(url, '/v1/whoami', { headers })).status, 'while it is locked').toBe(200);
  expect(log()).toContain('another program has locked');
  expect(log()).not.toContain('another dawatch');
  unlock();
  const { credentials } = JSON.parse((await send('GET', '/v1/credentials')).text);
  expect(credentials).toMatchObject([{ id, state: 'valid' }]);
  expect((await callWith(url, cookie, '/v1/whoami')).status).toBe(200);
  expect((await create()).status).toBe(201);
});
