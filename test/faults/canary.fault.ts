import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import { call } from '../support/app/http-calls.ts';
import { finalEnvelope } from '../support/ledger/domain.ts';
import { cli } from '../support/processes/cli.ts';
import { prepareServer } from '../support/processes/killable-server.ts';
import { redisForTest } from '../support/redis/redis-server.ts';
import { openSmtpReceiver } from '../support/servers/smtp-receiver.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { eventually, until } from '../support/until.ts';

const WEBHOOK_SECRET = `whsec_${Buffer.from('canary-of-the-webhook-signature').toString('base64')}`;
/** Every secret, with a value that can be recognized wherever it appears. */
const CANARY = {
  upstreamKey: 'canary-upstream-key-5d1f',
  upstreamBearer: 'canary-upstream-bearer-77ab',
  serviceKey: 'canary-service-key-19c4-0123456789',
  adminToken: 'canary-admin-token-83e0-0123456789',
  redisPassword: 'canary-redis-password-2b6d',
  smtpPassword: 'canary-smtp-password-f00d',
  slackPath: 'canary-slack-path-91aa',
  discordPath: 'canary-discord-path-92bb',
  teamsPath: 'canary-teams-path-93cc',
  apprisePath: 'canary-apprise-path-94dd',
  telegramToken: 'canary-telegram-token-95ee-012345',
  ntfyTopic: 'canary-ntfy-topic-96ff',
  ntfyToken: 'canary-ntfy-token-97aa',
  pagerdutyKey: 'canary-pagerduty-key-98bb-012345',
  webhookSecret: WEBHOOK_SECRET.slice('whsec_'.length),
  forwarded: 'canary-forwarded-bearer-c0de',
  guess: 'canary-guessed-key-0bad',
};
type Canary = keyof typeof CANARY;

const CHANNELS = [
  ...['slack', 'discord', 'teams', 'apprise'],
  ...['telegram', 'ntfy', 'pagerduty', 'mail'],
];

/** Echoes everything it receives, in the way that the id or the path requests. */
async function openEchoServer(): Promise<string> {
  const quote = ({ url, headers }: IncomingMessage) => JSON.stringify({ url, headers });
  const server = createServer((request, response) => {
    const url = request.url ?? '';
    const id = new URL(url, 'http://x').searchParams.get('submission_id');
    const status = Number(/(?:s|name=)(\d{3})/.exec(url)?.[1] ?? 200);
    if (status === 444) {
      request.socket.destroy();
      return;
    }
    response.statusCode = id === null && !url.includes('name=') ? 500 : status;
    if (id !== null && status === 200) {
      const fields = id.includes('error') ? { state: 'Error', error: quote(request) } : {};
      response.end(
        JSON.stringify({ ...finalEnvelope({ extra: quote(request) }, { id }), ...fields }),
      );
      return;
    }
    response.end(JSON.stringify({ error: quote(request) }));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Returns every key of a Redis with its content. */
async function contentOf(url: string): Promise<string> {
  const redis = new Redis(url);
  const read: Record<string, (key: string) => Promise<unknown>> = {
    string: (key) => redis.get(key),
    hash: (key) => redis.hgetall(key),
    list: (key) => redis.lrange(key, 0, -1),
    set: (key) => redis.smembers(key),
    zset: (key) => redis.zrange(key, '0', '-1'),
    stream: (key) => redis.xrange(key, '-', '+'),
  };
  const found: unknown[] = [];
  for (const key of await redis.keys('*'))
    found.push(key, await read[await redis.type(key)]?.(key));
  redis.disconnect();
  return JSON.stringify(found);
}

/** Texts by the location where they were found. */
type Locations = Map<string, string>;

function expectKept(locations: Locations, allowed: Record<string, readonly Canary[]>): void {
  const found = [...locations].flatMap(([place, text]) =>
    (Object.keys(CANARY) as Canary[])
      .filter((name) => text.includes(CANARY[name]) && !allowed[place]?.includes(name))
      .map(
        (name) =>
          `${name} in ${place}: ${text.slice(Math.max(0, text.indexOf(CANARY[name]) - 150)).slice(0, 220)}`,
      ),
  );
  expect(found.slice(0, 10)).toEqual([]);
}

it.each([true, false])(
  'no secret leaves the server, through successes and failures (callers forward their own: %s)',
  async (forwards) => {
    const redis = await redisForTest({ password: CANARY.redisPassword });
    const echo = await openEchoServer();
    const smtp = await openSmtpReceiver({ login: { user: 'dawatch', password: 'another-one' } });
    const mailer = smtp.url.replace(/\/\/.*@/, `//dawatch:${CANARY.smtpPassword}@`);
    const hook = (path: string) => `${echo}/${path}`;
    const server = await prepareServer(tempFolder(), {
      auth: { service_key: CANARY.serviceKey, admin_token: CANARY.adminToken },
      upstreams: {
        default: {
          url: echo,
          api_key: CANARY.upstreamKey,
          ...(!forwards && { bearer: CANARY.upstreamBearer }),
          lag_price: 1_000,
          budget: { requests: 500, per_s: 1, concurrency: 50 },
        },
      },
      redis: { url: redis.url },
      channels: {
        slack: { type: 'slack', url: hook(CANARY.slackPath) },
        discord: { type: 'discord', url: hook(CANARY.discordPath) },
        teams: { type: 'teams', url: hook(CANARY.teamsPath) },
        apprise: { type: 'apprise', url: hook(CANARY.apprisePath) },
        telegram: { type: 'telegram', url: echo, token: CANARY.telegramToken, chat_id: 1 },
        ntfy: { type: 'ntfy', url: echo, topic: CANARY.ntfyTopic, token: CANARY.ntfyToken },
        pagerduty: { type: 'pagerduty', url: echo, routing_key: CANARY.pagerdutyKey },
        mail: {
          type: 'email',
          smtp_url: mailer,
          tls: 'off',
          from: 'a@example.com',
          to: ['b@example.com'],
        },
      },
      routes: [{ types: ['*'], channels: CHANNELS }],
      webhooks: { allow: ['127.0.0.0/8'], allow_http: true },
      log: { level: 'debug' },
    });
    server.start();
    await server.listening();
    const locations: Locations = new Map();
    const request = async (
      method: string,
      path: string,
      headers: Record<string, string>,
      body?: unknown,
    ) => {
      const response = await call(server.url, path, {
        method,
        headers: { 'x-api-key': [], ...headers },
        ...(body !== undefined && { body }),
      });
      locations.set(`${method} ${path} ${locations.size}`, JSON.stringify(response));
      return response;
    };
    const service = { 'x-api-key': CANARY.serviceKey };
    const admin = { authorization: `Bearer ${CANARY.adminToken}` };
    const lookup = { authorization: `Bearer ${forwards ? CANARY.forwarded : CANARY.adminToken}` };

    await call(server.url, '/v1/webhooks', {
      method: 'POST',
      headers: { 'x-api-key': [], ...admin },
      body: { url: hook('hook'), secret: WEBHOOK_SECRET },
    });
    const ids = [200, 401, 403, 404, 406, 429, 444, 500, 502].flatMap((status) => [
      `s${status}-a`,
      `s${status}-error`,
    ]);
    // Those that pause or stop polls come last.
    for (const id of ids.toSorted(
      (a, b) =>
        Number(/s(?:401|403|429|444|50)/.test(a)) - Number(/s(?:401|403|429|444|50)/.test(b)),
    )) {
      await request('POST', '/v1/submissions', service, {
        submission_id: id,
        callback_url: hook('callback'),
      });
      await request('GET', `/v1/get_submission_info?submission_id=${id}`, service);
    }
    await request('DELETE', '/v1/submissions/s404-a', service);
    for (const name of ['200', '401', '403', '404', '429', '444', '500'])
      await request('GET', `/users/get_user?name=${name}&email=a%40example.com`, lookup);
    await request('GET', '/admin/get_all_users?limit=1', lookup);
    for (const headers of [
      { 'x-api-key': CANARY.guess },
      { authorization: `Bearer ${CANARY.guess}` },
      { authorization: CANARY.guess },
    ])
      for (const path of [
        '/v1/submissions',
        '/v1/audit',
        '/users/get_user?name=200&email=a%40example.com',
        '/nowhere',
      ])
        await request('GET', path, headers);
    await request('POST', '/v1/submissions', service, `{"submission_id": ${CANARY.guess.length}`);
    await request('POST', '/v1/submissions', service, { submission_id: 'x', upstream: 'nowhere' });

    // Every receiver has quoted what it received.
    const failed = () =>
      server.logged('delivery.failed').map(({ destination }) => String(destination));
    const receivers = [...CHANNELS.map((name) => `channel:${name}`), 'webhook:', 'callback:'];
    const unused = () => receivers.filter((one) => !failed().some((name) => name.startsWith(one)));
    await eventually(() => expect(unused()).toEqual([]));
    const shown = [
      '/v1/submissions?limit=1000',
      '/v1/overview',
      '/v1/pacing',
      '/metrics',
      '/readyz',
      '/openapi.json',
      '/v1/whoami',
    ];
    for (const path of [...shown, ...ids.map((id) => `/v1/submissions/${id}`)])
      await request('GET', path, service);
    for (const path of ['/v1/webhooks', '/v1/deliveries?limit=1000', '/v1/audit'])
      await request('GET', path, admin);
    const deliveries = JSON.stringify([...locations]).matchAll(/\\+"id\\+":(\d+),/g);
    const numbers = new Set([...deliveries].map(([, id]) => id));
    expect(numbers.size).toBeGreaterThan(0);
    for (const id of [...numbers].slice(0, 100))
      await request('GET', `/v1/deliveries/${id}`, admin);
    locations.set('Redis', await contentOf(redis.url));

    const config = ['--config', `${server.folder}/dawatch.yaml`];
    const env = {
      DAWATCH_URL: server.url,
      DAWATCH_API_KEY: CANARY.adminToken,
      DAWATCH_ADMIN_TOKEN: CANARY.adminToken,
    };
    for (const args of [
      ['config', ...config],
      ['config', '--json', ...config],
      ['doctor', ...config],
      ['doctor', '--json', ...config],
      ['api', '/v1/deliveries'],
      ['api', '/v1/deliveries/1'],
      ['token', 'list'],
    ]) {
      const { stdout, stderr } = await cli(args, { env });
      locations.set(`dawatch ${args.slice(0, 2).join(' ')}`, stdout + stderr);
    }
    await redis.kill();
    await until(() => server.logged('redis.disconnected').length > 0);
    await request('GET', '/readyz', service);
    await server.stop();
    locations.set('the log', server.lines.join('\n'));
    // A signature cannot be created from a hash.
    for (const name of ['', '-wal'])
      locations.set(`the ledger${name}`, readable(`${server.file}${name}`));
    expect(locations.get('the log')).toContain('delivery.failed');
    expect(locations.get('the log')).toContain('poll.observed');
    // The upstream and the receivers did quote secrets, and their texts were stored.
    for (const place of [/^GET .v1.submissions.s\d+-error /, /^GET .v1.deliveries.\d+ /])
      expect(
        [...locations].filter(([name, text]) => place.test(name) && text.includes('[redacted]')),
      ).not.toEqual([]);
    const ledger: Canary[] = ['webhookSecret'];
    expectKept(locations, { 'the ledger': ledger, 'the ledger-wal': ledger });
    expect(locations.get('the ledger') ?? '').toContain(CANARY.webhookSecret);
  },
);

function readable(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return '';
  }
}
