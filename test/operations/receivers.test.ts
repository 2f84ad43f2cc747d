import { describe, expect, it } from 'vitest';
import type { Webhook } from '../../src/notifications/webhook.ts';
import {
  checkCallbacks,
  checkChannel,
  checkHeartbeat,
  checkWebhook,
} from '../../src/operations/doctor/receivers.ts';
import { openReceiver } from '../support/servers/receiver.ts';
import { deadAddress } from '../support/servers/upstream-server.ts';

const SECRET_PATH = 'T0p-Secret-Path';
const WEBHOOK: Webhook = {
  id: 'wh_1',
  url: null,
  types: ['submission.*'],
  metadata: null,
  description: '',
  signature: 'v1',
  publicKeys: [],
  enabled: true,
  disabledReason: null,
  failingSince: null,
  createdAt: 0,
  updatedAt: 0,
};
const common = (dead: Record<string, number> = {}) => ({
  dead: new Map(Object.entries(dead)),
  limitMs: 5_000,
  signal: new AbortController().signal,
});

async function webhook(
  fields: Partial<Webhook>,
  settings: { allow?: string[]; dead?: Record<string, number> } = {},
) {
  const webhooks = {
    allow: settings.allow ?? ['127.0.0.0/8'],
    allow_http: true,
  };
  const findings = await checkWebhook(
    { ...WEBHOOK, ...fields },
    { webhooks, ...common(settings.dead) },
  );
  expect(JSON.stringify(findings)).not.toContain(SECRET_PATH);
  return findings;
}

describe('a webhook', () => {
  it('is connected to without sending anything', async () => {
    const receiver = await openReceiver();
    const url = `${receiver.url}/${SECRET_PATH}`;
    expect(await webhook({ url })).toEqual([
      {
        name: 'webhook.wh_1',
        status: 'ok',
        message: `127.0.0.1:${receiver.port} is reachable`,
        action: null,
      },
    ]);
    expect([receiver.requests, receiver.connections.total()]).toEqual([[], 1]);
  });

  it('with a refused connection is a problem', async () => {
    expect(await webhook({ url: `${await deadAddress()}/${SECRET_PATH}` })).toMatchObject([
      {
        status: 'warning',
        message: expect.stringMatching(/refused$/),
        action: expect.stringMatching(/three days/),
      },
    ]);
  });

  it('in a network that is not allowed is a problem', async () => {
    const receiver = await openReceiver();
    const url = `${receiver.url}/${SECRET_PATH}`;
    const advice = expect.stringMatching(/webhooks\.allow/);
    expect(await webhook({ url }, { allow: [] })).toMatchObject([
      { status: 'problem', action: advice },
    ]);
    const named = `http://localhost:${receiver.port}/${SECRET_PATH}`;
    expect(await webhook({ url: named }, { allow: ['::1/128', '127.0.0.2/32'] })).toMatchObject([
      { status: 'warning', message: expect.stringMatching(/not public|unreachable/) },
    ]);
    expect(receiver.connections.total()).toBe(0);
  });

  it('that fails, has dead letters or was disabled is reported', async () => {
    const { url } = await openReceiver();
    expect(await webhook({ url, failingSince: 0 }, { dead: { 'webhook:wh_1': 2 } })).toMatchObject([
      { status: 'warning', message: expect.stringMatching(/failed since 1970-01-01T/) },
      {
        status: 'warning',
        message: expect.stringMatching(/^2 dead letters/),
        action: expect.stringMatching(/replay --destination webhook:wh_1/),
      },
    ]);
    const disabled = { url, enabled: false };
    expect(await webhook({ ...disabled, disabledReason: 'operator' })).toMatchObject([
      { status: 'ok' },
    ]);
    for (const disabledReason of ['gone', 'failing'] as const)
      expect(await webhook({ ...disabled, disabledReason })).toMatchObject([
        { status: 'warning', action: expect.stringMatching(/--enable/) },
      ]);
  });

  it('of the callbacks is checked for dead letters only', async () => {
    expect(await webhook({ id: 'callbacks' })).toEqual([]);
    expect(checkCallbacks(new Map([['webhook:x', 1]]))).toEqual([]);
    const dead = new Map([
      ['callback:https://a.example', 1],
      ['callback:https://b.example', 2],
    ]);
    expect(checkCallbacks(dead)).toMatchObject([
      { name: 'webhook.callbacks', message: expect.stringMatching(/^3 dead/) },
    ]);
  });
});

describe('a channel', () => {
  it('is connected to at any address without sending anything', async () => {
    const receiver = await openReceiver();
    const slack = { type: 'slack' as const, url: `${receiver.url}/${SECRET_PATH}` };
    expect(await checkChannel('ops', slack, common())).toMatchObject([
      { name: 'channel.ops', status: 'ok' },
    ]);
    expect([receiver.requests, receiver.connections.total()]).toEqual([[], 1]);
  });

  it('of e-mail with an unreachable server and dead letters is a problem', async () => {
    const smtp_url = (await deadAddress()).replace('http://', 'smtp://user:the-password@');
    const email = {
      type: 'email' as const,
      smtp_url,
      from: 'a@b.example',
      to: ['c@d.example'],
    };
    const findings = await checkChannel('mail', email, common({ 'channel:mail': 1 }));
    expect(findings).toMatchObject([
      { status: 'warning', action: expect.stringMatching(/channels\.mail\.smtp_url/) },
      {
        status: 'warning',
        message: expect.stringMatching(/^1 dead letter$/),
        action: expect.stringMatching(/channel:mail/),
      },
    ]);
    expect(JSON.stringify(findings)).not.toContain('the-password');
  });
});

describe('the heartbeat', () => {
  it('is connected to without a call', async () => {
    const receiver = await openReceiver();
    expect(await checkHeartbeat(`${receiver.url}/${SECRET_PATH}`, common())).toMatchObject([
      { name: 'heartbeat', status: 'ok' },
    ]);
    expect([receiver.requests, receiver.connections.total()]).toEqual([[], 1]);
  });

  it('that is unreachable is a warning, without the path', async () => {
    const findings = await checkHeartbeat(`${await deadAddress()}/${SECRET_PATH}`, common());
    expect(findings).toMatchObject([{ status: 'warning', action: 'verify heartbeat.url' }]);
    expect(JSON.stringify(findings)).not.toContain(SECRET_PATH);
  });
});
