import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { findChromium, openChromium } from './chromium.ts';

/** The reason to skip browser tests. CI never skips them: a missing Chromium is a failure there. */
export const SKIPPED =
  findChromium() === undefined && process.env.CI === undefined
    ? 'no chromium on the PATH: apt-get install chromium, and these run too'
    : undefined;
if (SKIPPED !== undefined) console.warn(`tests of the dashboard are skipped: ${SKIPPED}`);

/** `origins`: others to which pages may send requests. */
type OpenOptions = BrowserContextOptions & { origins?: readonly string[] };

/** One headless Chromium for a whole test file. A console error or a request to another host fails the test. */
export function useBrowser() {
  let browser: Browser | undefined;
  const complaints: string[] = [];
  const ofTest: BrowserContext[] = [];
  beforeAll(async () => {
    if (SKIPPED === undefined) browser = await openChromium();
  });
  afterEach(async () => {
    await Promise.all(ofTest.splice(0).map((context) => context.close()));
    expect(complaints.splice(0), 'what pages complained of').toEqual([]);
  });
  afterAll(() => browser?.close());

  async function open(url: string, { origins = [], ...options }: OpenOptions): Promise<Page> {
    if (!browser) throw new Error('it runs only within tests');
    const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(10_000);
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('console', (message) => {
      // The browser also logs refused requests by itself.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
        complaints.push(message.text());
    });
    page.on('request', (request) => {
      const { origin, protocol } = new URL(request.url());
      if (![new URL(url).origin, ...origins].includes(origin) && protocol !== 'data:') complaints.push(request.url());
    });
    await page.goto(url);
    return page;
  }

  return {
    /** A page with its own storage, closed when the test ends. */
    async open(url: string, options: OpenOptions = {}): Promise<Page> {
      const page = await open(url, options);
      ofTest.push(page.context());
      return page;
    },
    /** One page for all tests of the file. */
    openForAll: (url: string): Promise<Page> => open(url, {}),
  };
}

export async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel('Token', { exact: true }).fill(token);
  await page.keyboard.press('Enter');
  await page
    .getByRole('navigation', { name: 'Pages' })
    .or(page.getByRole('button', { name: 'Menu' }))
    .waitFor();
}

/** Opens another page of the dashboard without a reload. */
export async function goTo(page: Page, path: string): Promise<void> {
  await page.evaluate(`location.hash = '#/nowhere'; location.hash = ${JSON.stringify(`#/${path}`)}`);
}
