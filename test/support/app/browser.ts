import type { Browser, Page, Request } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { findChromium, openChromium } from './chromium.ts';

/** The reason to skip browser tests. CI never skips them: a missing Chromium is a failure there. */
export const SKIPPED =
  findChromium() === undefined && process.env.CI === undefined
    ? 'no chromium on the PATH: apt-get install chromium, and these run too'
    : undefined;
if (SKIPPED !== undefined) console.warn(`tests of the dashboard are skipped: ${SKIPPED}`);

const VIEWPORT = { width: 1_280, height: 720 };
/** The events of a page that tests listen to. */
const LISTENED = ['dialog', 'request', 'response'] as const;
/** A file that starts within this time after another one uses the same browser. */
const KEPT_MS = 3_000;

/** The browser of this process and its unused pages. A new page costs as much CPU as twenty navigations. */
let browser: Promise<Browser> | undefined;
let closing: NodeJS.Timeout | undefined;
const idle: Page[] = [];
/** What pages complained of since the previous test. */
const complaints: string[] = [];
/** Where pages may send requests. */
const origins = new Set<string>();

/** A headless Chromium for a test file. A console error or a request to another host fails the test. */
export function useBrowser() {
  const ofTest: Page[] = [];
  const ofFile: Page[] = [];
  beforeAll(async () => {
    if (SKIPPED !== undefined) return;
    clearTimeout(closing);
    origins.clear();
    browser ??= openChromium();
    await browser;
  });
  beforeEach(async ({ task }) => {
    // A failed attempt may have left the page of the file anywhere, and signed out.
    if ((task.result?.retryCount ?? 0) > 0) for (const page of ofFile) await recover(page);
  });
  afterEach(async () => {
    await release(ofTest.splice(0));
    expect(complaints.splice(0), 'what pages complained of').toEqual([]);
  });
  afterAll(async () => {
    await release(ofFile.splice(0));
    closing = setTimeout(close, KEPT_MS);
  });
  const open = async (url: string, pages: Page[]): Promise<Page> => {
    const page = idle.pop() ?? (await create());
    pages.push(page);
    origins.add(new URL(url).origin);
    await page.goto(url);
    return page;
  };
  return {
    /** A page without cookies and stored values, until the test ends. `others`: origins to which it may send requests, too. */
    open(url: string, { origins: others = [] }: { origins?: readonly string[] } = {}): Promise<Page> {
      for (const origin of others) origins.add(origin);
      return open(url, ofTest);
    },
    /** One page for all tests of the file. */
    openForAll: (url: string): Promise<Page> => open(url, ofFile),
  };
}

async function create(): Promise<Page> {
  if (!browser) throw new Error('it runs only within tests');
  const options = { reducedMotion: 'reduce', viewport: VIEWPORT, ignoreHTTPSErrors: true } as const;
  const context = await (await browser).newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    // The browser also logs refused requests by itself.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      complaints.push(message.text());
  });
  page.on('request', checkOrigin);
  return page;
}

function checkOrigin(request: Request): void {
  const { protocol, origin } = new URL(request.url());
  if (protocol.startsWith('http') && !origins.has(origin)) complaints.push(request.url());
}

async function release(pages: readonly Page[]): Promise<void> {
  await Promise.all(pages.map((page) => empty(page).catch(() => page.context().close())));
}

/** Prepares a page for another test. Throws if it is closed or has an installed clock. */
async function empty(page: Page): Promise<void> {
  const context = page.context();
  await Promise.all(context.pages().map((one) => one !== page && one.close()));
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  if (await page.evaluate('"__pwClock" in globalThis')) throw new Error('a clock can not be removed');
  await page.evaluate('sessionStorage.clear(); localStorage.clear()');
  await context.clearCookies();
  await context.clearPermissions();
  await page.goto('about:blank');
  for (const event of LISTENED) page.removeAllListeners(event);
  page.on('request', checkOrigin);
  await page.emulateMedia({ colorScheme: null });
  await page.setViewportSize(VIEWPORT);
  idle.push(page);
}

async function close(): Promise<void> {
  const closed = browser;
  browser = undefined;
  idle.length = 0;
  await (await closed)?.close();
}

/** The token of each page that has signed in. */
const tokens = new WeakMap<Page, string>();

async function recover(page: Page): Promise<void> {
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.reload();
  const token = tokens.get(page);
  const form = page.getByLabel('Token', { exact: true });
  await form
    .or(page.getByRole('button', { name: 'Sign out' }))
    .or(page.getByRole('button', { name: 'Menu' }))
    .first()
    .waitFor();
  if (token !== undefined && (await form.isVisible())) await signIn(page, token);
}

export async function signIn(page: Page, token: string): Promise<void> {
  tokens.set(page, token);
  await page.getByLabel('Token', { exact: true }).fill(token);
  await page.keyboard.press('Enter');
  await page
    .getByRole('navigation', { name: 'Pages' })
    .or(page.getByRole('button', { name: 'Menu' }))
    .first()
    .waitFor();
}

/** Opens another page of the dashboard without a reload. */
export async function goTo(page: Page, path: string): Promise<void> {
  await page.evaluate(`location.hash = '#/nowhere'; location.hash = ${JSON.stringify(`#/${path}`)}`);
}
