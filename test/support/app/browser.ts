import type { Browser, Page, Request } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { STEP_MS } from '../patience.ts';
import { findChromium, openChromium } from './chromium.ts';
import { ADMIN_TOKEN } from './lookups.ts';
import { signInWith } from './sessions.ts';

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

/**
 * The browser of this process and its unused pages. A new page costs as much CPU as twenty
 * navigations.
 */
let browser: Promise<Browser> | undefined;
let closing: NodeJS.Timeout | undefined;
const idle: Page[] = [];
/** What pages complained of since the previous test. */
const complaints: string[] = [];
/** Where pages may send requests. */
const origins = new Set<string>();

/**
 * A headless Chromium for a test file. A console error or a request to another host fails the test.
 */
export function useBrowser() {
  const ofTest: Page[] = [];
  let ofFile: Page | undefined;
  beforeAll(async () => {
    if (SKIPPED !== undefined) return;
    clearTimeout(closing);
    origins.clear();
    await (browser ?? launch());
  });
  afterEach(async ({ task }) => {
    const pages = ofTest.splice(0);
    if (task.result?.state === 'fail') {
      // The test may have left them anywhere: signed out, with routes, or in use, because a test
      // that timed out continues to run.
      await Promise.all(
        [...pages, ...(ofFile ? [ofFile] : [])].map((page) => page.context().close()),
      );
      ofFile = undefined;
    } else {
      await release(pages);
    }
    expect(complaints.splice(0), 'what pages complained of').toEqual([]);
  });
  afterAll(async () => {
    if (ofFile) await release([ofFile]);
    ofFile = undefined;
    closing = setTimeout(close, KEPT_MS);
  });
  const open = async (url: string, token?: string): Promise<Page> => {
    const page = idle.pop() ?? (await create());
    ofTest.push(page);
    const { origin } = new URL(url);
    origins.add(origin);
    if (token !== undefined) {
      const [name = '', ...value] = (await signInWith(origin, token)).cookie.split('=');
      await page.context().addCookies([{ name, value: value.join('='), url: origin }]);
    }
    await page.goto(url);
    if (token !== undefined) await isSignedIn(page);
    return page;
  };
  const openForAll = async (url: string, token = ADMIN_TOKEN): Promise<Page> => {
    if (ofFile) return ofFile;
    const page = await open(url, token);
    ofTest.splice(ofTest.indexOf(page), 1);
    ofFile = page;
    return page;
  };
  return {
    /**
     * A page without cookies and stored values, until the test ends. `others`: origins to which it
     * may send requests, too.
     */
    open(
      url: string,
      { origins: others = [] }: { origins?: readonly string[] } = {},
    ): Promise<Page> {
      for (const origin of others) origins.add(origin);
      return open(url);
    },
    /** The same with a session of the token, which the form of the sign-in would open slowly. */
    openAs: (token: string, url: string): Promise<Page> => open(url, token),
    /**
     * The page of all tests of the file, which the first one opens, by default as the
     * administrator. After a failed test it is a new one.
     */
    openForAll,
    /** Shows a page of the dashboard in it. */
    async show(url: string, path = ''): Promise<Page> {
      const page = await openForAll(url);
      await goTo(page, path);
      return page;
    },
  };
}

/**
 * Opens the browser of this process. One that crashes, or does not start, is replaced at its next
 * use.
 */
function launch(): Promise<Browser> {
  const launched = openChromium();
  const forget = () => {
    if (browser !== launched) return;
    browser = undefined;
    idle.length = 0;
  };
  launched.then((opened) => opened.once('disconnected', forget), forget);
  browser = launched;
  return launched;
}

async function create(): Promise<Page> {
  const options = { reducedMotion: 'reduce', viewport: VIEWPORT, ignoreHTTPSErrors: true } as const;
  const context = await (await (browser ?? launch())).newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(STEP_MS);
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
  if (await page.evaluate('"__pwClock" in globalThis'))
    throw new Error('a clock cannot be removed');
  await page.evaluate('sessionStorage.clear(); localStorage.clear()');
  await page.goto('about:blank');
  await context.clearCookies();
  await context.clearPermissions();
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

export async function signIn(page: Page, token: string): Promise<void> {
  const field = page.getByLabel('Token', { exact: true });
  await field.fill(token);
  await page.keyboard.press('Enter');
  // After a session has ended, the form covers the page.
  await field.waitFor({ state: 'detached' });
  await isSignedIn(page);
}

/** With its title, the page has also begun to listen to keys and to changes of its address. */
async function isSignedIn(page: Page): Promise<void> {
  await expect.poll(() => page.title()).toMatch(/^(?!Sign in).* · dawatch$/);
}

/** For `evaluateAll`: clicks what is there now, without waiting for it. */
export function clickEach(all: unknown[]): void {
  for (const one of all as { click(): void }[]) one.click();
}

/** Resolves once the clipboard contains the text: its notice on the page vanishes. */
export async function expectCopied(page: Page, text: string): Promise<void> {
  await page.context().grantPermissions(['clipboard-read']);
  await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toBe(text);
}

/**
 * Sets a filter of a list to another value through its form; empty: removes it. The rows of the
 * previous filters stay until those of the new ones arrive.
 */
export async function setFilter(page: Page, label: string, value: string): Promise<void> {
  const bar = page.getByRole('search');
  if ((await bar.locator('details[open]').count()) === 0) await bar.getByText('Filters').click();
  const form = await bar.locator('form').elementHandle();
  const field = bar.getByLabel(new RegExp(`^${label}(, UTC)?$`));
  if (await field.evaluate((one) => one.tagName === 'SELECT')) await field.selectOption(value);
  else await field.fill(value);
  await bar.getByRole('button', { name: 'Apply' }).click();
  // The form of the new filters replaces it.
  await form?.waitForElementState('hidden');
}

/** Removes the filters of a list, and waits until its form shows that. */
export async function clearFilters(page: Page): Promise<void> {
  const link = page.getByRole('link', { name: 'Clear filters' });
  await link.click();
  await link.waitFor({ state: 'detached' });
}

/**
 * Opens another page of the dashboard without a reload, by way of one that shows nothing: otherwise
 * a list would show the rows of its previous address until the new ones arrive.
 */
export async function goTo(page: Page, path: string): Promise<void> {
  await page.evaluate(`(async () => {
    for (const hash of ['#/nowhere', ${JSON.stringify(`#/${path}`)}]) {
      if (location.hash === hash) continue;
      const changed = new Promise((done) => addEventListener('hashchange', done, { once: true }));
      location.hash = hash;
      await changed;
    }
  })()`);
}
