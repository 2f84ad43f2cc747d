import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { call, problemOf } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN, AS_ADMIN } from '../support/app/lookups.ts';
import { acceptedOf, rotatedOf, useNotifyingApp } from '../support/app/notifying-app.ts';
import { appForTest } from '../support/app/running-app.ts';
import { openReceiver } from '../support/servers/receiver.ts';
import { openSmtpReceiver } from '../support/servers/smtp-receiver.ts';

const app = useNotifyingApp();
const { admin } = app;

/** An app with a channel for alerts at this receiver, and one without routes. */
async function openWithChannels(url: string) {
  const running = await appForTest({
    adminToken: ADMIN_TOKEN,
    publicUrl: 'https://dawatch.example.com',
    channels: {
      ops: { type: 'slack', url: `${url}/services/T0/SECRET?key=SECRET` },
      mail: {
        type: 'email',
        smtp_url: 'smtp://user:SECRET@127.0.0.1:1',
        from: 'dawatch@example.com',
        to: ['ops@example.com'],
      },
    },
    routes: [{ types: ['alert.*'], channels: ['ops'] }],
  });
  return (method: string, path: string) => call(running.url, path, { method, headers: AS_ADMIN });
}

/** Resolves with the delivery after its first attempt. */
async function tried(send: (method: string, path: string) => ReturnType<typeof call>, id: number) {
  for (;;) {
    const delivery = JSON.parse((await send('GET', `/v1/deliveries/${id}`)).text);
    if (delivery.attempts.length > 0) return delivery;
  }
}

describe('channels', () => {
  it('are listed with their events, and without the secrets of their addresses', async () => {
    const send = await openWithChannels('http://127.0.0.1:1');
    const { status, text } = await send('GET', '/v1/channels');
    expect([status, JSON.parse(text)]).toEqual([
      200,
      {
        channels: [
          {
            name: 'ops',
            type: 'slack',
            address: 'http://127.0.0.1:1/********',
            routes: [{ types: ['alert.*'], metadata: null }],
            last_success_at: null,
            last_failure_at: null,
            last_error: null,
            failing_since: null,
            deliveries: { waiting: 0, dead: 0 },
          },
          {
            name: 'mail',
            type: 'email',
            address: 'smtp://********@127.0.0.1:1, to ops@example.com',
            routes: [],
            last_success_at: null,
            last_failure_at: null,
            last_error: null,
            failing_since: null,
            deliveries: { waiting: 0, dead: 0 },
          },
        ],
      },
    ]);
    expect(text).not.toMatch(/SECRET|T0|user/);
  });

  it('show when each last succeeded and failed, and why', async () => {
    const receiver = await openReceiver([{}, { status: 500 }]);
    const send = await openWithChannels(receiver.url);
    const results = async () => {
      const { channels } = JSON.parse((await send('GET', '/v1/channels')).text);
      return channels.map((one: Record<string, string | null>) => [
        one.last_success_at,
        one.last_failure_at,
        one.last_error,
        one.failing_since,
      ]);
    };
    const end = async () => {
      const { id } = acceptedOf(await send('POST', '/v1/channels/ops/test'));
      const { attempts } = await tried(send, id);
      return new Date(Date.parse(attempts[0].at) + attempts[0].duration_ms).toISOString();
    };
    const [succeeded, failed] = [await end(), await end()];
    expect(await results()).toEqual([
      [succeeded, failed, 'responded with 500', failed],
      [null, null, null, null],
    ]);
  });

  it('send a mail again only to the recipients that were refused for now, and name those that were refused for good', async () => {
    const [kept, later, never] = ['kept@x.example', 'later@x.example', 'never@x.example'] as const;
    let code: number | undefined = 450;
    const receiver = await openSmtpReceiver({
      refuse: (address) => (address === later ? code : address === never ? 550 : undefined),
    });
    const lines: string[] = [];
    const running = await appForTest({
      adminToken: ADMIN_TOKEN,
      channels: {
        mail: {
          type: 'email',
          smtp_url: receiver.url,
          from: 'a@x.example',
          to: [kept, later, never],
        },
      },
      onLog: (line) => lines.push(line),
    });
    const send = (method: string, path: string) =>
      call(running.url, path, { method, headers: AS_ADMIN });
    const { id } = acceptedOf(await send('POST', '/v1/channels/mail/test'));
    const [first] = (await tried(send, id)).attempts;
    expect(first.error).toBe('2 of 3 recipients refused (450, 550)');
    code = undefined;
    await send('POST', `/v1/deliveries/${id}/replay`);
    await expect.poll(() => receiver.mails).toHaveLength(2);
    expect(receiver.mails.map(({ recipients }) => recipients)).toEqual([[kept], [later]]);

    const other = acceptedOf(await send('POST', '/v1/channels/mail/test'));
    const warning = '1 of 3 recipients refused (550)';
    expect(await tried(send, other.id)).toMatchObject({ state: 'delivered', last_error: warning });
    const { channels } = JSON.parse((await send('GET', '/v1/channels')).text);
    expect(channels[0].last_failure_at).toBe(channels[0].last_success_at);
    expect(channels[0]).toMatchObject({ last_error: warning, failing_since: null });
    const logged = lines.map((line) => JSON.parse(line)).filter(({ error }) => error === warning);
    expect(logged).toMatchObject([{ level: 'warn', event: 'delivery.delivered' }]);
    expect(lines.join()).not.toContain('x.example');
  });

  it('are tested regardless of their routes, at once, with a link', async () => {
    const receiver = await openReceiver();
    const send = await openWithChannels(receiver.url);
    const accepted = acceptedOf(await send('POST', '/v1/channels/ops/test'));
    expect(accepted).toMatchObject({
      event_type: 'channel.test',
      destination: 'channel:ops',
      submission_id: null,
    });
    expect(await tried(send, accepted.id)).toMatchObject({
      state: 'delivered',
      event: { type: 'channel.test', data: { channel: 'ops' } },
      attempts: [{ http_status: 200, error: null }],
    });
    expect(receiver.requests).toHaveLength(1);
    expect(receiver.requests[0]?.body).toContain('Test event for the channel ops');
    expect(receiver.requests[0]?.body).toContain(
      '<https://dawatch.example.com/#/channels|Open in dawatch>',
    );
  });

  it('and the heartbeat send the login of their address as Basic authorization, and show it nowhere', async () => {
    const receiver = await openReceiver(({ request, response }) =>
      response
        .writeHead(request.headers.authorization ? 500 : 401)
        .end(`refused: ${request.headers.authorization}, user:p@ss`),
    );
    const url = `${receiver.url.replace('//', '//us%65r:p%40ss@')}/x`;
    const types = ['slack', 'discord', 'teams', 'apprise'] as const;
    const lines: string[] = [];
    const running = await appForTest({
      adminToken: ADMIN_TOKEN,
      channels: Object.fromEntries(types.map((type) => [type, { type, url }])),
      heartbeat: { url, every_s: 60 },
      logLevel: 'debug',
      onLog: (line) => lines.push(line),
    });
    const send = (method: string, path: string) =>
      call(running.url, path, { method, headers: AS_ADMIN });
    const shown = [(await send('GET', '/v1/channels')).text];
    for (const type of types) {
      const { id } = acceptedOf(await send('POST', `/v1/channels/${type}/test`));
      const delivery = await tried(send, id);
      expect(delivery.attempts, type).toMatchObject([{ http_status: 500 }]);
      shown.push(JSON.stringify(delivery));
    }
    await expect.poll(() => lines.join()).toContain('heartbeat.failed');
    const login = Buffer.from('user:p@ss').toString('base64');
    expect(receiver.requests.map(({ headers: sent }) => sent.authorization)).toEqual(
      Array(types.length + 1).fill(`Basic ${login}`),
    );
    for (const text of [...shown, ...lines]) {
      expect(text).not.toContain(login);
      expect(text).not.toMatch(/p@ss|p%40ss/);
    }
  });

  it.each([
    ['other', 404, 'there is no channel other'],
    ['Ops', 400, 'must be the name of a channel'],
  ])('%s cannot be tested', async (name, status, detail) => {
    const response = await admin('POST', `/v1/channels/${name}/test`);
    expect([response.status, problemOf(response).detail]).toEqual([
      status,
      expect.stringContaining(detail),
    ]);
  });
});

describe('the test of a callback', () => {
  it('is sent to the address, signed with the secret of the callbacks, and can be replayed', async () => {
    const receiver = await openReceiver([{ status: 500 }, {}]);
    const { secret } = rotatedOf(
      await admin('POST', '/v1/webhooks/callbacks/rotate', { keep_old_s: 0 }),
    );
    const url = `${receiver.url}/hook?of=me`;
    const accepted = acceptedOf(await admin('POST', '/v1/callbacks/test', { url }));
    expect(accepted).toMatchObject({
      event_type: 'webhook.test',
      destination: `callback:${receiver.url}`,
    });
    expect(await app.tried(accepted.id)).toMatchObject({
      state: 'waiting',
      event: { data: { webhook_id: 'callbacks' } },
      attempts: [{ http_status: 500 }],
    });
    await admin('POST', `/v1/deliveries/${accepted.id}/replay`);
    await expect.poll(() => receiver.requests.length).toBe(2);
    const { path, headers, body } = receiver.requests[1] ?? expect.fail('nothing was sent');
    expect(path).toBe('/hook?of=me');
    expect(new Webhook(secret ?? '').verify(body, headers as Record<string, string>)).toMatchObject(
      {
        id: accepted.event_id,
        type: 'webhook.test',
      },
    );
  });

  it.each<[object, string]>([
    [{}, 'is missing'],
    [{ url: 'https://10.0.0.1/' }, 'is not allowed'],
  ])('of %j is refused', async (body, detail) => {
    const response = await admin('POST', '/v1/callbacks/test', body);
    expect(response.status).toBe(400);
    expect(problemOf(response).errors).toContainEqual({
      pointer: '/url',
      detail: expect.stringContaining(detail),
    });
  });

  it('is refused while callbacks are disabled', async () => {
    await admin('PATCH', '/v1/webhooks/callbacks', { enabled: false });
    const response = await admin('POST', '/v1/callbacks/test', { url: 'https://example.com/' });
    await admin('PATCH', '/v1/webhooks/callbacks', { enabled: true });
    expect([response.status, problemOf(response).detail]).toEqual([
      409,
      'the webhook callbacks is disabled',
    ]);
  });
});
