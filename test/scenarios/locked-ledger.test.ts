import { expect, it } from 'vitest';
import { call, post, problemOf } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { appForTest } from '../support/app/running-app.ts';
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

it('another program that has locked the ledger is named to callers and in the log', async () => {
  const { url, lock, unlock, log } = await open();
  lock();
  const create = () =>
    call(url, '/v1/credentials', {
      method: 'POST',
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
      body: { name: 'billing', role: 'service' },
    });
  const refused = await create();
  expect(refused.status).toBe(503);
  expect(refused.headers['retry-after']).toBe('5');
  expect(problemOf(refused).detail).toBe(
    'another program has locked the ledger: nothing of the request was stored',
  );
  expect(log()).toContain('another program has locked');
  expect(log()).not.toContain('another dawatch');
  unlock();
  expect((await create()).status).toBe(201);
});
