import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sha256 } from '../../src/access/access.ts';
import type { NewWebhook } from '../../src/notifications/delivery.ts';
import { call, detailsOf, post, problemOf, trackedOf } from '../support/app/http-calls.ts';
import { appForTest } from '../support/app/running-app.ts';
import { context, observation } from '../support/ledger/domain.ts';
import { openLedger, rawConnection, trackRequest } from '../support/ledger/ledger-file.ts';
import { cli } from '../support/processes/cli.ts';
import { tempFolder } from '../support/temp-folder.ts';

const ADMIN_TOKEN = 'an-admin-token-for-tests-0123456789';
const AS_ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };

/** Each kind of object that a caller can create has a maximum, which docs/http.md states. */
async function open() {
  const database = join(tempFolder(), 'ledger.db');
  const app = await appForTest({ database, adminToken: ADMIN_TOKEN });
  const send = (method: string, path: string, body?: object) =>
    call(app.url, path, { method, body, headers: AS_ADMIN });
  return {
    url: app.url,
    database,
    send,
    create: (path: string, body: object) => send('POST', path, body),
    detailOf: async (response: ReturnType<typeof send>) => {
      const { status, detail } = problemOf(await response);
      return [status, detail];
    },
  };
}

it('at most 100 webhooks, so that an event writes at most 100 deliveries to them', async () => {
  const { create, send, detailOf } = await open();
  const webhook = { url: 'https://example.com/', types: ['*'] };
  const made = [];
  for (let times = 0; times < 100; times += 1) made.push(await create('/v1/webhooks', webhook));
  expect(made.every(({ status }) => status === 201)).toBe(true);
  expect(await detailOf(create('/v1/webhooks', webhook))).toEqual([
    409,
    'there are 100 webhooks: delete some of them first',
  ]);
  await send('DELETE', `/v1/webhooks/${JSON.parse(made[0]?.text ?? '').id}`);
  expect((await create('/v1/webhooks', webhook)).status).toBe(201);
});

describe('credentials:', () => {
  const TOKEN = { name: 'billing', role: 'service' };
  const insert = (database: string, count: number, revokedAt: number | null) => {
    const db = rawConnection(database);
    const add = db.prepare(
      "INSERT INTO credentials (hash, role, name, created_at, revoked_at) VALUES (randomblob(32), 'service', 'x', 0, ?)",
    );
    db.transaction(() => {
      for (let times = 0; times < count; times += 1) add.run(revokedAt);
    })();
    db.close();
  };

  it('at most 1,000 that are not revoked, also by the command', async () => {
    const { database, create, send, detailOf } = await open();
    insert(database, 1_000, null);
    const detail = 'there are 1000 credentials that are not revoked: revoke some of them first';
    expect(await detailOf(create('/v1/credentials', TOKEN))).toEqual([409, detail]);
    const { code, stderr } = await cli(['token', 'create', '--role', 'user', '--name', 'x'], {
      env: { DAWATCH_DATABASE: database },
    });
    expect([code, stderr]).toEqual([2, expect.stringContaining('there are 1000 tokens')]);
    await send('DELETE', '/v1/credentials/1');
    expect((await create('/v1/credentials', TOKEN)).status).toBe(201);
  });

  it('the newest 1,000 revoked ones stay in the list, and ids are not used again', async () => {
    const { database, create, send } = await open();
    insert(database, 1_000, 1);
    const { id } = JSON.parse((await create('/v1/credentials', TOKEN)).text);
    const listed = async () => {
      const ids: number[] = [];
      for (let query = ''; ; ) {
        const { text } = await send('GET', `/v1/credentials?limit=1000${query}`);
        const page = JSON.parse(text);
        ids.push(...page.credentials.map(({ id }: { id: number }) => id));
        if (page.next_cursor === null) return ids;
        query = `&cursor=${page.next_cursor}`;
      }
    };
    expect(await listed()).toContain(1);
    await send('DELETE', `/v1/credentials/${id}`);
    const ids = await listed();
    expect([1, 2, id].map((one) => ids.includes(one))).toEqual([false, true, true]);
    expect(JSON.parse((await create('/v1/credentials', TOKEN)).text).id).toBe(id + 1);
  });

  it('a person can sign in when there are 1,000 tokens', async () => {
    const ledger = openLedger();
    insert(ledger.file, 1_000, null);
    const person = {
      issuer: 'https://a.example',
      subject: 'ada',
      name: 'ada',
      role: 'operator',
    } as const;
    const session = { hash: sha256('x'), replaces: undefined };
    expect(ledger.people.signIn(person, session, { address: '::1', now: 1 })).toBe('signed_in');
    expect(ledger.people.nameOf(1_001)).toBe('ada');
  });
});

it('a history of 1,000 entries gets no further ones from callers', async () => {
  const { url, database, send, detailOf } = await open();
  await post(url, { submission_id: 'a' });
  const change = (team: number) => send('PATCH', '/v1/submissions/a', { metadata: { team } });
  expect((await change(1)).status).toBe(200);
  const db = rawConnection(database);
  db.exec(`
    INSERT INTO history (submission, version, at, status, polls)
    SELECT id, 1000, tracked_at, status, polls FROM submissions;
    UPDATE submissions SET version = 1000`);
  db.close();
  expect(await detailOf(change(2))).toEqual([
    409,
    'the history of a has 1000 entries: it cannot be changed again',
  ]);
  expect((await change(1)).status, 'nothing differs').toBe(200);
  await send('DELETE', '/v1/submissions/a');
  const { already_final, retracked } = trackedOf(
    await post(url, { submission_id: 'a', retrack: true }),
  );
  expect([already_final, retracked]).toEqual([1, 0]);
  const { status, history } = detailsOf(await call(url, '/v1/submissions/a'));
  expect([status, history.length]).toEqual(['cancelled', 4]);
});

it('a delivery that is replayed again and again keeps its newest 100 attempts', () => {
  const ledger = openLedger();
  const webhook: NewWebhook = {
    url: 'https://a.example/',
    types: ['*'],
    metadata: null,
    description: '',
    enabled: true,
  };
  const { id } = ledger.webhooks.create(webhook, 'whsec_x', 1);
  ledger.track([trackRequest('a', { deadlineAt: 1_000_000 })], 1);
  ledger.record([observation('finalized', 2, 'a')], context());
  const [delivery] = ledger.deliveries.list({ limit: 1 }).deliveries;
  const deliveryId = delivery?.id ?? 0;
  for (let at = 1; at <= 150; at += 1) {
    const attempt = { at, durationMs: 0, httpStatus: 200, error: null, response: null };
    ledger.deliveries.recordResults([
      {
        deliveryId,
        destination: `webhook:${id}`,
        attempts: 0,
        address: webhook.url,
        attempt,
        next: { kind: 'delivered' },
      },
    ]);
    ledger.deliveries.replay(deliveryId, at);
  }
  const kept = ledger.deliveries.get(deliveryId);
  if (!kept || !('attempts' in kept)) return expect.fail('there is no such delivery');
  expect(kept.attempts.map(({ at }) => at)).toEqual(
    Array.from({ length: 100 }, (_, index) => index + 51),
  );
});
