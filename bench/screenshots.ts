// npm run docs:screenshots: takes the screenshots of docs/dashboard.md from a real run of the
// sandbox, the server and a browser. The clock of both servers runs twenty times faster, so that an
// hour of submissions takes three minutes. With `-- --all <folder>`, it takes every page at every
// width, in light and dark mode, into another folder.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { startApp } from '../src/app.ts';
import { DawatchClient } from '../src/client/index.ts';
import type { Clock } from '../src/lib/clock.ts';
import { systemClock } from '../src/lib/system-clock.ts';
import { loadConfig } from '../src/operations/config/load.ts';
import { createLog } from '../src/operations/logging/logger.ts';
import { startSandbox } from '../src/sandbox/server.ts';
import { openChromium } from '../test/support/app/chromium.ts';
import { seededRandom } from './support/random.ts';

const SPEED = 20;
const HOUR_MS = 3_600_000;
const PER_S = 0.4;
const VIEWPORTS = [
  { width: 390, height: 844 },
  { width: 768, height: 1_024 },
  { width: 1_920, height: 1_080 },
] as const;
const OVERVIEW = { width: 1_280, height: 960 };
/** The pages in the documents, at every width. */
const PUBLISHED = [
  ...['overview', 'submissions', 'submission', 'reports', 'webhooks', 'deliveries'],
  ...['channels', 'alerts', 'tokens', 'audit'],
];

const isAll = process.argv.includes('--all');
const target = process.argv.at(-1) ?? '.';
mkdirSync(target, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), 'dawatch-screenshots-'));
const clock = fastClock(Date.now() - HOUR_MS);
/** Responses by path: the shop is out of service, and the old shop is gone. */
const STATUSES: Record<string, number> = { '/shop': 503, '/old-shop': 410 };
const receiver = createServer(({ url = '' }, response) => {
  response.statusCode = STATUSES[url] ?? 200;
  response.end(url === '/orders' ? '' : 'ok');
}).listen(0, '127.0.0.1');
const sandbox = await startSandbox({
  options: { seed: 7, errorRate: 0.15, deadRate: 0.003, stragglerRate: 0.02 },
  now: clock.now,
});
const env = {
  DAWATCH_UPSTREAM_URL: sandbox.url,
  DAWATCH_UPSTREAM_API_KEY: 'sandbox-key',
  DAWATCH_DATABASE: join(folder, 'dawatch.db'),
  DAWATCH_PORT: '0',
  DAWATCH_ADMIN_TOKEN: 'an-admin-token-for-this-run-0123456789',
  DAWATCH_WEBHOOK_ALLOW: '127.0.0.0/8',
  DAWATCH_WEBHOOK_ALLOW_HTTP: 'true',
};
const receiverUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
const { config } = loadConfig({ file: null, env });
const app = await startApp({
  config: {
    ...config,
    channels: {
      operators: { type: 'slack', url: `${receiverUrl}/operators` },
      orders: { type: 'apprise', url: `${receiverUrl}/orders` },
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
const client = new DawatchClient({ url: app.url, apiKey: env.DAWATCH_ADMIN_TOKEN });
const browser = await openChromium();
try {
  await client.webhooks.create({ url: `${receiverUrl}/dawatch`, description: 'Orders' });
  const enough = new AbortController();
  const submitting = submit(enough.signal);
  await setTimeout((HOUR_MS / SPEED) * 0.9);
  await client.webhooks.create({
    url: `${receiverUrl}/shop`,
    types: ['submission.failing', 'submission.failed'],
    description: 'Shop',
  });
  await setTimeout((HOUR_MS / SPEED) * 0.1);
  const page = await browser.newPage({ viewport: OVERVIEW });
  await page.goto(app.url);
  await page.getByLabel('Token', { exact: true }).fill(env.DAWATCH_ADMIN_TOKEN);
  await page.keyboard.press('Enter');
  await page.locator('.events li').nth(9).waitFor();
  // The counts are updated after the events.
  await setTimeout(3_000);
  await picture(page, 'overview-light');
  await page.emulateMedia({ colorScheme: 'dark' });
  await picture(page, 'overview-dark');
  await page.emulateMedia({ colorScheme: 'light' });
  await operate();
  for (const colorScheme of isAll ? (['light', 'dark'] as const) : (['light'] as const)) {
    await page.emulateMedia({ colorScheme });
    for (const viewport of VIEWPORTS) await pictures(page, viewport, colorScheme);
  }
  enough.abort();
  await submitting;
} finally {
  await browser.close();
  await app.close();
  await sandbox.close();
  receiver.close();
  rmSync(folder, { recursive: true, force: true });
}

function fastClock(begin: number): Clock {
  const startedAt = performance.now();
  return {
    now: () => Math.floor(begin + (performance.now() - startedAt) * SPEED),
    after: (delayMs, run) => systemClock.after(delayMs / SPEED, run),
  };
}

/** Varies the number of submissions over time. */
async function submit(signal: AbortSignal): Promise<void> {
  const random = seededRandom(11);
  for (let made = 0; !signal.aborted; made++) {
    await client.track([sandbox.model.submit(`order ${made}`, clock.now())], {
      metadata: { order: 4_711 + made },
    });
    const perS = PER_S * (1 + 0.6 * Math.sin((clock.now() / HOUR_MS) * 2 * Math.PI));
    await setTimeout((-Math.log(1 - random()) / perS / SPEED) * 1_000);
  }
}

/**
 * Does what operators and admins do: tokens, a webhook whose receiver is gone, which raises an
 * alert, and maintenance.
 */
async function operate(): Promise<void> {
  const inDays = (days: number) => new Date(clock.now() + days * 24 * HOUR_MS).toISOString();
  const billing = await client.credentials.create({ name: 'billing', role: 'service' });
  await client.credentials.create({ name: 'on call', role: 'operator', expires_at: inDays(90) });
  await client.credentials.create({
    name: 'deploys',
    scopes: ['webhooks:write'],
    expires_at: inDays(30),
  });
  const { id } = await client.credentials.create({ name: 'old billing', role: 'service' });
  await client.credentials.revoke(id);
  await new DawatchClient({ url: app.url, apiKey: billing.secret }).list({ limit: 1 });
  await client.credentials.rotate(billing.id, { overlap_s: 3_600 });
  await client.webhooks.create({ url: `${receiverUrl}/old-shop`, description: 'Old shop' });
  await client.alerts.mute({
    from: inDays(1),
    until: inDays(1.1),
    reason: 'Maintenance of the upstream',
  });
  await client.alerts.mute({
    rule: 'stuck',
    subject: 'default',
    until: inDays(0.2),
    reason: 'The chain is slow today',
  });
  for (let checks = 0; checks < 60 && (await client.alerts.list()).alerts.length === 0; checks++)
    await setTimeout(1_000);
  await client.channels.test('operators');
  await setTimeout(1_000);
}

/**
 * Returns a submission that failed, was sent again and became final, or else the one with the most
 * changes.
 */
async function findEventfulSubmission(): Promise<string> {
  const { submissions } = await client.list({ status: 'finalized', limit: 1_000 });
  let best: { id: string; changes: number } = { id: '', changes: 0 };
  for (const { submission_id: id } of submissions) {
    const { history } = await client.get(id);
    const changes = history.length + (history.some(({ status }) => status === 'failing') ? 10 : 0);
    if (changes > best.changes) best = { id, changes };
  }
  return best.id;
}

/**
 * Takes every page of the navigation, one submission, one webhook and the menu at one width.
 */
async function pictures(
  page: Page,
  viewport: (typeof VIEWPORTS)[number],
  colorScheme: string,
): Promise<void> {
  await page.setViewportSize(viewport);
  const links = await page.evaluate<string[]>(
    `[...document.querySelectorAll('nav[aria-label="Pages"] a')].map((link) => link.hash.slice(2))`,
  );
  const [webhook] = (await client.webhooks.list()).webhooks;
  const paths: [name: string, path: string][] = [
    ...links.map((path): [string, string] => [path === '' ? 'overview' : path, path]),
    ['submission', `submissions/${await findEventfulSubmission()}`],
    ['webhook', `webhooks/${webhook?.id}`],
  ];
  for (const [name, path] of paths) {
    const fullName = `${name}-${viewport.width}${colorScheme === 'dark' ? '-dark' : ''}`;
    if (!isAll && !PUBLISHED.includes(name)) continue;
    await page.goto(`${app.url}/#/${path}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.locator('main > *:not(h1):not(p)').first().waitFor();
    await picture(page, fullName);
  }
  if (!isAll) return;
  const menu = page.getByRole('button', { name: 'Menu' });
  if (!(await menu.isVisible())) return;
  await menu.click();
  await picture(page, `menu-${viewport.width}-${colorScheme}`);
  await page.keyboard.press('Escape');
}

async function picture(page: Page, name: string): Promise<void> {
  // Relative times are those of the accelerated clock at the end of this wait.
  await page.clock.setFixedTime(clock.now() + 1_500 * SPEED);
  await setTimeout(1_500);
  // With the accelerated clock the browser appears slow, and the server sometimes closes its feed.
  await page.getByText('Live', { exact: true }).waitFor();
  await page.screenshot({ path: join(target, `${name}.png`) });
}
