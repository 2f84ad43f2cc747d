import { join } from 'node:path';
import { expect, it } from 'vitest';
import { DawatchClient } from '../../src/client/index.ts';
import { backupLedger } from '../../src/ledger/restore.ts';
import { call, post } from '../support/app/http-calls.ts';
import { API_KEY, appForTest } from '../support/app/running-app.ts';
import { context, observation } from '../support/ledger/domain.ts';
import { openLedger, rawConnection, trackRequests } from '../support/ledger/ledger-file.ts';
import { openReceiver } from '../support/servers/receiver.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { eventually } from '../support/until.ts';

const ADMIN = 'an-admin-token-for-these-tests-0123456789';
const HOOK = {
  types: ['*'],
  metadata: null,
  description: '',
  enabled: true,
};
const SECRET = `whsec_${'A'.repeat(43)}=`;

/**
 * A ledger with three finalized submissions, and a webhook that has received nothing yet, in which
 * a statement damages a row.
 */
function damagedLedger(hookUrl: string, damage: string): { database: string; webhookId: string } {
  const ledger = openLedger({ file: join(tempFolder(), 'dawatch.db') });
  const { id: webhookId } = ledger.webhooks.create({ ...HOOK, url: hookUrl }, SECRET, 0);
  ledger.track(trackRequests(3), 1);
  ledger.record(
    ['s0', 's1', 's2'].map((id) => observation('finalized', 2, id)),
    context(),
  );
  ledger.close();
  const db = rawConnection(ledger.file);
  db.pragma('ignore_check_constraints = ON');
  db.exec(damage);
  db.close();
  return { database: ledger.file, webhookId };
}

it('a damaged row is one clear 500 that names it, and stops nothing else', async () => {
  const receiver = await openReceiver();
  const { database, webhookId } = damagedLedger(
    receiver.url,
    "UPDATE submissions SET metadata = '[1]' WHERE submission_id = 's1'",
  );
  const webhooks = { allow: ['127.0.0.0/8'], allow_http: true };
  const app = await appForTest({
    database,
    adminToken: ADMIN,
    webhooks,
    tuning: { alertCheckMs: 3_600_000 },
  });
  const get = async (path: string) => {
    const { status, text } = await call(app.url, path, { headers: { 'x-api-key': API_KEY } });
    return { status, body: JSON.parse(text) };
  };
  expect(await get('/v1/submissions/s1')).toMatchObject({
    status: 500,
    body: {
      detail: expect.stringMatching(/^the submission s1 is damaged: its metadata cannot be read/),
    },
  });
  expect((await get('/v1/submissions/s2')).status).toBe(200);
  expect((await post(app.url, { submission_id: 'new' })).status).toBe(202);

  // The live feed shows the damaged event as a gap, and goes on.
  const client = new DawatchClient({ url: app.url, apiKey: API_KEY, token: ADMIN });
  await client.cancel('new');
  const seen: unknown[] = [];
  for await (const { data } of client.events({
    after: 0,
    onGap: ({ through }) => seen.push(through),
  })) {
    seen.push('submission' in data && data.submission.submission_id);
    if (seen.includes('new')) break;
  }
  expect(seen).toEqual(['s0', 2, 's2', 'new']);

  // The dispatcher makes it a dead letter, and delivers the others.
  await eventually(() => expect(receiver.requests).toHaveLength(3));
  const { deliveries } = await client.deliveries.list({
    destination: `webhook:${webhookId}`,
    state: 'dead',
  });
  expect(deliveries).toMatchObject([{ dead_reason: 'undeliverable', submission_id: 's1' }]);
  expect(deliveries[0]?.last_error).toContain('is damaged: its metadata cannot be read');
});

it.each([
  [
    'block_hash',
    `DROP TRIGGER history_is_append_only; UPDATE history SET response = replace(response, '"0x', '"0x%')`,
  ],
  ['data_hash', `UPDATE submissions SET data_hash = '0x%'`],
])(
  'a %s that is not hexadecimal is not served, and no backup is made of it',
  async (_name, damage) => {
    const { database } = damagedLedger('http://127.0.0.1:1', damage);
    const app = await appForTest({
      database,
      adminToken: ADMIN,
      tuning: { alertCheckMs: 3_600_000 },
    });
    const paths = ['/v1/submissions/s1', '/v1/get_submission_info?submission_id=s1'];
    for (const path of paths) {
      const { status, text } = await call(app.url, path, { headers: { 'x-api-key': API_KEY } });
      expect([status, text]).toEqual([500, expect.stringContaining('damaged')]);
    }
    const copy = join(tempFolder(), 'copy.db');
    await expect(backupLedger(database, copy)).rejects.toThrow('is not hexadecimal');
  },
);

it('a hash with a line break is served, and a backup is made of it', async () => {
  const { database } = damagedLedger(
    'http://127.0.0.1:1',
    `DROP TRIGGER history_is_append_only; UPDATE history SET response = json_set(response, '$.data.block_hash', '0xfa4e' || char(10))`,
  );
  expect(openLedger({ file: database }).submissions.get('s1')?.submissionId).toBe('s1');
  const copy = join(tempFolder(), 'copy.db');
  await expect(backupLedger(database, copy)).resolves.toMatchObject({ submissions: 3 });
});

it('a damaged row fails no other read of the same turn', async () => {
  const damage = "UPDATE submissions SET metadata = '[1]' WHERE submission_id = 's1'";
  const { database: file } = damagedLedger('http://127.0.0.1:1', damage);
  const { submissions } = openLedger({ file });
  const reads = ['s1', 's0', 's1', 's2'].map((id) => submissions.readWithHistory(id));
  const results = await Promise.allSettled(reads);
  expect(results.map(({ status }) => status)).toEqual([
    'rejected',
    'fulfilled',
    'rejected',
    'fulfilled',
  ]);
});
