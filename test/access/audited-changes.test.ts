import { expect, it } from 'vitest';
import { AUDIT_ACTIONS, type AuditAction } from '../../src/access/audit-store.ts';
import { call } from '../support/app/http-calls.ts';
import { type Lookups, openLookups } from '../support/app/lookups.ts';
import { deadAddress } from '../support/servers/upstream-server.ts';

type Entry = {
  action: AuditAction;
  subject: string | null;
  detail: string | null;
  caller: string;
  result: string;
};

const send = (lookups: Lookups, method: string, path: string, body?: unknown) =>
  call(lookups.url, path, {
    method,
    headers: { 'x-api-key': [], authorization: `Bearer ${lookups.tokens.admin}` },
    ...(body !== undefined && { body }),
  });

/** Its upstream is unreachable, so that no submission ends by itself. */
const openUnpolled = async () => openLookups({ upstreamUrl: await deadAddress() });

/** Entries, oldest first, without those of reading them. */
async function entriesOf(lookups: Lookups): Promise<Entry[]> {
  const { text } = await lookups.get('/v1/audit?limit=1000', lookups.tokens.admin);
  const entries: Entry[] = JSON.parse(text).entries;
  return entries.filter(({ action }) => action !== 'audit.read').toReversed();
}

it('every change over HTTP has an entry with its caller and subject, and a request that changes nothing has none', async () => {
  const lookups = await openUnpolled();
  const created = await send(lookups, 'POST', '/v1/webhooks', { url: 'https://example.com/' });
  const { id, secret } = JSON.parse(created.text);
  await send(lookups, 'PATCH', `/v1/webhooks/${id}`, { description: 'later', types: ['*'] });
  const test = JSON.parse((await send(lookups, 'POST', `/v1/webhooks/${id}/test`)).text);
  await send(lookups, 'POST', `/v1/webhooks/${id}/rotate`, { keep_old_s: 60 });
  await send(lookups, 'POST', `/v1/deliveries/${test.id}/replay`);
  await send(lookups, 'POST', '/v1/deliveries/replay', { destination: `webhook:${id}` });
  await send(lookups, 'POST', '/v1/submissions', { submission_id: 'a' });
  // The second one changes nothing.
  for (const _ of [1, 2]) await send(lookups, 'DELETE', '/v1/submissions/a');
  await send(lookups, 'DELETE', `/v1/webhooks/${id}`);
  const expected = [
    ['webhooks.create', id, null],
    ['webhooks.update', id, 'description, types'],
    ['webhooks.test', id, null],
    ['webhooks.rotate', id, 'keep_old_s 60'],
    ['deliveries.replay', String(test.id), null],
    ['deliveries.replay', `webhook:${id}`, '0'],
    ['submissions.cancel', 'a', null],
    ['webhooks.delete', id, null],
  ];
  const shown = (entries: Entry[]) =>
    entries.map(({ action, subject, detail }) => [action, subject, detail]);
  const entries = await entriesOf(lookups);
  expect(shown(entries)).toEqual(expected);
  for (const { caller, result, action } of entries) {
    expect([caller, result]).toEqual(['the admin', 'done']);
    expect(Object.keys(AUDIT_ACTIONS)).toContain(action);
  }
  expect(JSON.stringify(entries)).not.toContain(secret.slice(6));

  // The second one changes nothing.
  for (const _ of [1, 2]) await send(lookups, 'DELETE', '/v1/submissions/a');
  await send(lookups, 'DELETE', '/v1/submissions/never');
  for (const [method, path, body] of [
    ['PATCH', `/v1/webhooks/${id}`, { enabled: true }],
    ['DELETE', `/v1/webhooks/${id}`],
    ['POST', `/v1/webhooks/${id}/rotate`, {}],
    ['POST', `/v1/webhooks/${id}/test`],
    ['POST', '/v1/webhooks', { url: 'not-a-url' }],
    ['POST', '/v1/deliveries/4711/replay'],
    ['POST', '/v1/deliveries/replay', { destination: `webhook:${id}` }],
  ] as const)
    expect((await send(lookups, method, path, body)).status).toBeGreaterThanOrEqual(400);
  expect(shown(await entriesOf(lookups))).toEqual(expected);
});

it('the export has all entries, oldest first, and is audited', async () => {
  const lookups = await openUnpolled();
  const { admin } = lookups.tokens;
  for (let index = 0; index < 3; index += 1) {
    await send(lookups, 'POST', '/v1/submissions', { submission_id: `s${index}` });
    await send(lookups, 'DELETE', `/v1/submissions/s${index}`);
  }
  const response = await lookups.get('/v1/audit?format=ndjson', admin);
  expect(response).toMatchObject({
    status: 200,
    headers: { 'content-type': 'application/x-ndjson' },
  });
  const lines = response.text.trimEnd().split('\n');
  const actions = lines.map((line) => JSON.parse(line).action);
  expect(actions).toEqual([...Array(3).fill('submissions.cancel'), 'audit.export']);
});

it('a HEAD request for the export exports nothing', async () => {
  const lookups = await openLookups();
  const headers = { 'x-api-key': [], authorization: `Bearer ${lookups.tokens.admin}` };
  const response = await call(lookups.url, '/v1/audit?format=ndjson', { method: 'HEAD', headers });
  expect(response).toMatchObject({
    status: 200,
    headers: { 'content-type': 'application/x-ndjson' },
    text: '',
  });
  expect(await entriesOf(lookups)).toEqual([]);
});

it('a refused sign-in has an entry, with the address of the client and without the credential', async () => {
  const lookups = await openLookups({ trustedProxies: ['loopback'] });
  const headers = { 'x-api-key': 'a-secret-of-nobody', 'x-forwarded-for': '192.0.2.1' };
  await call(lookups.url, '/v1/submissions', { headers });
  expect(await entriesOf(lookups)).toMatchObject([
    { action: 'auth.refused', result: 'refused', address: '192.0.2.1', detail: 'unknown' },
  ]);
  expect(JSON.stringify(await entriesOf(lookups))).not.toContain('a-secret');
});
