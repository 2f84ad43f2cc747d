import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { DawatchClient, type DawatchEvent } from '../../src/client/index.ts';
import { verifyWebhook } from '../../src/client/webhook.ts';
import { startSandbox } from '../../src/sandbox/server.ts';
import { API_KEY, openApp } from '../support/app/running-app.ts';
import { openReceiver } from '../support/servers/receiver.ts';
import { until } from '../support/until.ts';

const ADMIN = 'an-admin-token-for-tests-0123456789';
const HERE = { allow: ['127.0.0.0/8'], allow_http: true };
type Setting = Omit<Parameters<typeof openApp>[0], 'database'>;

/** An app with a sandbox upstream, both closed when the test ends. */
async function openWorld(setting: Setting = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'dawatch-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const sandbox = await startSandbox({ options: { speed: 200 } });
  onTestFinished(() => sandbox.close());
  const database = join(folder, 'ledger.db');
  const open = () =>
    openApp({ database, upstreamUrl: sandbox.url, adminToken: ADMIN, webhooks: HERE, ...setting });
  const app = await open();
  onTestFinished(() => app.close());
  const admin = async (method: string, path: string, body?: unknown) => {
    const headers = { authorization: `Bearer ${ADMIN}`, 'content-type': 'application/json' };
    const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
    return (await (await fetch(`${app.url}${path}`, init)).json()) as Record<string, unknown> & {
      secret: string;
    };
  };
  const client = new DawatchClient({ url: app.url, apiKey: API_KEY });
  return { app, admin, client, sandbox, submit: () => sandbox.model.submit('data', Date.now()) };
}

it('a finalized submission is delivered to a webhook and to its callback, each signed with its own secret', async () => {
  const { admin, client, submit } = await openWorld();
  const [receiver, caller] = [await openReceiver(), await openReceiver()];
  const metadata = { team: 'billing' };
  const { secret } = await admin('POST', '/v1/webhooks', {
    url: receiver.url,
    types: ['submission.finalized'],
    metadata,
  });
  const { secret: callbackSecret } = await admin('POST', '/v1/webhooks/callbacks/rotate', {});
  const id = submit();
  await client.track([id], { metadata, callback_url: `${caller.url}/done?order=7` });
  await client.track([submit()], { metadata: { team: 'other' } });
  await until(() => receiver.requests.length + caller.requests.length >= 2);
  const verified = (
    request: (typeof receiver.requests)[number] | undefined,
    key: string,
  ): DawatchEvent =>
    verifyWebhook({ payload: request?.body ?? '', headers: request?.headers ?? {}, secret: key });
  const event = verified(receiver.requests[0], secret);
  expect(event).toMatchObject({
    type: 'submission.finalized',
    data: { submission: { submission_id: id, status: 'finalized', metadata }, cut: false },
  });
  expect(caller.requests[0]?.path).toBe('/done?order=7');
  expect(verified(caller.requests.at(-1), callbackSecret)).toEqual(event);
  expect(() => verified(receiver.requests[0], callbackSecret)).toThrow();
  expect(receiver.requests).toHaveLength(1);
});

it('an outage is reported once to the chat of the operators, as is its end', async () => {
  const chat = await openReceiver();
  const { client, sandbox, submit } = await openWorld({
    channels: { ops: { type: 'slack', url: `${chat.url}/services/SECRET` } },
    routes: [{ types: ['alert.*'], channels: ['ops'] }],
  });
  sandbox.injectFault({ kind: 'database' });
  await client.track(Array.from({ length: 50 }, submit));
  const raised = () => chat.requests.filter(({ body }) => body.includes('is not responding'));
  await until(() => raised().length > 0);
  const { requests } = sandbox.stats();
  await until(() => sandbox.stats().requests >= requests + 5);
  sandbox.injectFault({ kind: 'none' });
  await until(() => chat.requests.length >= 2);
  expect(chat.requests).toHaveLength(2);
  expect(chat.requests[0]?.body).toContain(
    'The upstream default is not responding (HTTP 500 Database connection error); 50 submissions are waiting for it',
  );
  expect(chat.requests[1]?.body).toMatch(/resolved|over/i);
});

it('no secret of a webhook, a callback or a channel is logged, whatever fails', async () => {
  const receiver = await openReceiver({ status: 500, body: 'no' });
  const lines: string[] = [];
  const { admin, client, submit } = await openWorld({
    logLevel: 'debug',
    onLog: (line) => lines.push(line),
    channels: {
      ops: { type: 'slack', url: `${receiver.url}/services/CHANNEL-SECRET` },
    },
    routes: [{ types: ['*'], channels: ['ops'] }],
  });
  const { secret } = await admin('POST', '/v1/webhooks', {
    url: `${receiver.url}/?token=URL-SECRET`,
    types: ['*'],
  });
  await client.track([submit()], { callback_url: `${receiver.url}/?token=CALLBACK-SECRET` });
  await until(() => receiver.requests.length >= 3);
  await until(() => lines.filter((line) => line.includes('delivery.failed')).length >= 3);
  expect(lines.join('')).not.toMatch(/URL-SECRET|CALLBACK-SECRET|CHANNEL-SECRET|whsec_/);
  expect(lines.join('')).not.toContain(secret);
});
