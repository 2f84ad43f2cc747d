import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { startApp } from '../../src/app.ts';
import { DawatchClient } from '../../src/client/index.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { createLog } from '../../src/operations/logging/logger.ts';
import { startSandbox } from '../../src/sandbox/server.ts';
import { loadConfig } from '../../src/wiring/settings.ts';
import { seededRandom } from './random.ts';
import type { SlackMessage } from './slack-message.ts';

const SPEED = 30;
const MIN_MS = 60_000;
const HOUR_MS = 60 * MIN_MS;
const PER_S = 0.35;
const TOKEN = 'an-admin-token-for-this-run-0123456789';
const CALLERS = ['checkout', 'invoices', 'archive of the warehouse in Rotterdam'];
/** Responses of the receivers by path: the shop is out of service, and the old shop is gone. */
const STATUSES: Record<string, number> = { '/shop': 503, '/old-shop': 410 };

/**
 * A server with a history that looks real: some 1,500 submissions in a bit more than an hour, an
 * outage of the upstream, slow and failed submissions, dead letters, tokens and alerts. Its clock
 * begins in the past and runs faster until it has reached the present.
 */
export async function startDemoWorld() {
  const folder = mkdtempSync(join(tmpdir(), 'dawatch-screenshots-'));
  const clock = catchingUpClock(Date.now() - 75 * MIN_MS);
  const sandbox = await startSandbox({
    options: { seed: 7, errorRate: 0.15, deadRate: 0.004, stragglerRate: 0.02, lostRate: 0.002 },
    now: clock.now,
  });
  let isDown = false;
  const upstream = await listen(async (url, headers) => {
    if (isDown) return { status: 503, body: '{"error":"maintenance"}' };
    const response = await fetch(sandbox.url + url, { headers });
    return { status: response.status, body: await response.text() };
  });
  const messages: SlackMessage[] = [];
  const receiver = await listen(async (url, _headers, body) => {
    if (url === '/operators') messages.push(JSON.parse(body) as SlackMessage);
    return {
      status: STATUSES[url] ?? 200,
      body: url === '/shop' ? 'upstream connect error: connection refused' : 'ok',
    };
  });
  const env = {
    DAWATCH_UPSTREAM_URL: upstream.url,
    DAWATCH_UPSTREAM_API_KEY: 'sandbox-key',
    DAWATCH_UPSTREAM_BEARER: 'sandbox-admin-token',
    DAWATCH_DATABASE: join(folder, 'dawatch.db'),
    DAWATCH_PORT: '0',
    DAWATCH_PUBLIC_URL: 'https://dawatch.example.com',
    DAWATCH_ADMIN_TOKEN: TOKEN,
    DAWATCH_WEBHOOK_ALLOW: '127.0.0.0/8',
    DAWATCH_WEBHOOK_ALLOW_HTTP: 'true',
  };
  const { config } = loadConfig({ file: null, env });
  const app = await startApp({
    config: {
      ...config,
      channels: {
        operators: { type: 'slack', url: `${receiver.url}/operators` },
        orders: { type: 'apprise', url: `${receiver.url}/orders` },
        managers: {
          type: 'email',
          smtp_url: 'smtp://mail.example.com',
          from: 'dawatch@example.com',
          to: ['managers@example.com'],
        },
      },
      routes: [
        { types: ['alert.*', 'upstream.*'], channels: ['operators'] },
        { types: ['submission.failed', 'submission.expired'], channels: ['orders'] },
        { types: ['alert.raised'], channels: ['managers'] },
      ],
    },
    log: createLog({ level: 'silent' }, process.stderr),
    clock,
    random: seededRandom(7),
    onNewKey: () => undefined,
  });
  const client = new DawatchClient({ url: app.url, apiKey: TOKEN });
  const enough = new AbortController();
  const inVirtual = (ms: number) =>
    new Promise<void>((resolve) => {
      clock.after(ms, resolve);
    });

  await client.webhooks.create({ url: `${receiver.url}/dawatch`, description: 'Orders' });
  await client.webhooks.create({
    url: `${receiver.url}/shop`,
    types: ['submission.failing', 'submission.failed'],
    description: 'Shop',
  });
  const submitting = submit();
  await inVirtual(20 * MIN_MS);
  await client.webhooks.create({
    url: `${receiver.url}/old-shop`,
    types: ['submission.failing', 'submission.failed'],
    description: 'Old shop',
  });
  await inVirtual(15 * MIN_MS);
  isDown = true;
  await inVirtual(6 * MIN_MS);
  isDown = false;
  await operate();
  await inVirtual(Math.max(0, clock.leftMs()));

  return {
    url: app.url,
    token: TOKEN,
    client,
    /** Those that were sent to the channel of the operators. */
    messages,
    async close() {
      enough.abort();
      await submitting;
      await app.close();
      await sandbox.close();
      upstream.server.close();
      receiver.server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };

  /** Varies the number of submissions over time. */
  async function submit(): Promise<void> {
    const random = seededRandom(11);
    for (let number = 0; !enough.signal.aborted; number++) {
      const caller = CALLERS[number % 7 === 0 ? 2 : number % 2] ?? '';
      await client.track([sandbox.model.submit(`order ${number}`, clock.now())], {
        metadata: { order: 4_711 + number, from: caller },
      });
      const perS = PER_S * (1 + 0.6 * Math.sin((clock.now() / HOUR_MS) * 2 * Math.PI));
      const delayS = -Math.log(1 - random()) / perS;
      await setTimeout((clock.leftMs() > 0 ? delayS / SPEED : delayS) * 1_000);
    }
  }

  /** Does what operators and admins do: tokens, a mute and maintenance. */
  async function operate(): Promise<void> {
    const inDays = (days: number) => new Date(clock.now() + days * 24 * HOUR_MS).toISOString();
    const billing = await client.credentials.create({ name: 'billing', role: 'service' });
    await client.credentials.create({ name: 'on call', role: 'operator', expires_at: inDays(90) });
    await client.credentials.create({ name: 'deploys', role: 'admin', expires_at: inDays(30) });
    const { id } = await client.credentials.create({ name: 'old billing', role: 'service' });
    await client.credentials.revoke(id);
    await new DawatchClient({ url: app.url, apiKey: billing.secret }).list({ limit: 1 });
    await client.alerts.mute({
      rule: 'webhook_disabled',
      until: inDays(1.1),
      reason: 'The old shop is closed',
    });
    await client.channels.test('operators');
    const { webhooks } = await client.webhooks.list();
    const shop = webhooks.find(({ description }) => description === 'Shop');
    if (!shop) return;
    await inVirtual(15 * MIN_MS);
    // Its waiting deliveries become dead letters.
    await client.webhooks.update(shop.id, { enabled: false });
    await client.webhooks.update(shop.id, { enabled: true });
  }
}

/** Runs faster than real time from `begin` on, until it has reached real time. */
function catchingUpClock(begin: number): Clock & { leftMs(): number } {
  const startedAt = performance.now();
  const realBegin = Date.now();
  const passed = () => performance.now() - startedAt;
  const meetAfter = (realBegin - begin) / (SPEED - 1);
  const leftMs = () => Math.max(0, (meetAfter - passed()) * SPEED);
  return {
    leftMs,
    now: () => {
      const ms = passed();
      return Math.floor(ms < meetAfter ? begin + ms * SPEED : realBegin + ms);
    },
    elapsed: passed,
    after(delayMs, run) {
      const fast = Math.min(delayMs, leftMs());
      return systemClock.after(fast / SPEED + (delayMs - fast), run);
    },
  };
}

async function listen(
  respond: (
    url: string,
    headers: Record<string, string>,
    body: string,
  ) => Promise<{ status: number; body: string }>,
): Promise<{ url: string; server: Server }> {
  const server = createServer(async (request, response) => {
    const { host: _, connection: __, 'transfer-encoding': ___, ...others } = request.headers;
    const sent = await text(request);
    const headers = others as Record<string, string>;
    const { status, body } = await respond(request.url ?? '', headers, sent);
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}
