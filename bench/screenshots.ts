// npm run docs:screenshots: takes the pictures of the documents from a real run of the sandbox, the
// server and a browser. With `-- --all <folder>`, it takes every page at every width, in light
// and dark mode, into another folder.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { DawatchClient } from '../src/client/index.ts';
import { openChromium } from '../test/support/app/chromium.ts';
import { startDemoWorld } from './support/demo-world.ts';
import { type SlackMessage, slackPage } from './support/slack-message.ts';

const SIZES: Record<number, number> = { 390: 844, 1280: 800, 1920: 1_080 };
type Scheme = 'light' | 'dark';
type Picture = { page: string; width: number; scheme: Scheme };
/** The pictures in the documents, named by page, width and scheme. */
const PUBLISHED: readonly Picture[] = [
  { page: 'overview', width: 1280, scheme: 'light' },
  { page: 'overview', width: 1280, scheme: 'dark' },
  { page: 'overview', width: 390, scheme: 'light' },
  { page: 'submissions', width: 1280, scheme: 'light' },
  { page: 'submissions', width: 390, scheme: 'light' },
  { page: 'submission', width: 1280, scheme: 'light' },
  { page: 'deliveries', width: 1280, scheme: 'light' },
];
const PAGES = [
  ...['overview', 'submissions', 'submission', 'pacing', 'alerts', 'webhooks'],
  ...['webhook', 'channels', 'deliveries', 'users', 'tokens', 'audit'],
];
const EVERY: readonly Picture[] = PAGES.flatMap((page) =>
  Object.keys(SIZES).flatMap((width) =>
    (['light', 'dark'] as const).map((scheme) => ({ page, width: Number(width), scheme })),
  ),
);
/** Until charts and tables are drawn. */
const SETTLED_MS = 1_500;

const pictures = process.argv.includes('--all') ? EVERY : PUBLISHED;
const target = process.argv.at(-1) ?? '.';
mkdirSync(target, { recursive: true });
const world = await startDemoWorld();
const browser = await openChromium();
try {
  const page = await browser.newPage();
  await page.goto(world.url);
  await page.getByLabel('Token', { exact: true }).fill(world.token);
  await page.keyboard.press('Enter');
  await page.locator('.counts').waitFor();
  const paths = await pathsOf(world.client);
  for (const { page: name, width, scheme } of pictures) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: SIZES[width] ?? width });
    await page.goto(`${world.url}/#/${paths[name] ?? name}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await setTimeout(SETTLED_MS);
    await page.screenshot({ path: join(target, `${name}-${width}-${scheme}.png`) });
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.goto('about:blank');
  await page.setContent(slackPage(publishedOf(world.messages)));
  await page.locator('main').screenshot({ path: join(target, 'notification.png') });
} finally {
  await browser.close();
  await world.close();
}

/** About the outage, and about the submissions that became late. */
function publishedOf(messages: readonly SlackMessage[]): SlackMessage[] {
  return [/is down$/, /open for too long$/].flatMap(
    (title) => messages.find(({ blocks }) => title.test(blocks[0]?.text.text ?? '')) ?? [],
  );
}

/** Paths by the names of pages. */
async function pathsOf(client: DawatchClient): Promise<Record<string, string>> {
  const { webhooks } = await client.webhooks.list();
  const shop = webhooks.find(({ description }) => description === 'Shop');
  return {
    overview: '',
    submission: `submissions/${await findEventfulSubmission(client)}`,
    webhook: `webhooks/${shop?.id}`,
  };
}

/**
 * Returns a submission that failed, was sent again and became final, or else the one with the most
 * changes.
 */
async function findEventfulSubmission(client: DawatchClient): Promise<string> {
  const { submissions } = await client.list({ status: 'finalized', limit: 1_000 });
  let best: { id: string; changes: number } = { id: '', changes: 0 };
  for (const { submission_id: id } of submissions) {
    const { history } = await client.get(id);
    const changes = history.length + (history.some(({ status }) => status === 'failing') ? 10 : 0);
    if (changes > best.changes) best = { id, changes };
  }
  return best.id;
}
