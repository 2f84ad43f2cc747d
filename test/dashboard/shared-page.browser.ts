import { describe, expect, it } from 'vitest';
import { goTo, SKIPPED, signIn, TEST_MS, useBrowser } from '../support/app/browser.ts';
import { API_KEY, useApp } from '../support/app/running-app.ts';

const app = useApp();
const browser = useBrowser();
const open = () => browser.openForAll(app.url, (page) => signIn(page, API_KEY));
const FREE_MS = 1_000;
let continued: Promise<unknown> = Promise.resolve();

describe.skipIf(SKIPPED)('a page that the tests of a file share', { timeout: TEST_MS }, () => {
  it('is opened and signed in by the first test', async () => {
    const page = await open();
    await page.evaluate('globalThis.isFirst = true');
  });

  it('is the same in the next test', async () => {
    expect(await (await open()).evaluate('globalThis.isFirst')).toBe(true);
  });

  it.fails('may be left signed out and with routes by a test that fails', async () => {
    const page = await open();
    await page.route('**/v1/submissions?*', (route) => route.abort());
    await page.getByRole('button', { name: 'Sign out' }).click();
    throw new Error('it fails');
  });

  it('is signed in and without routes after a failed test', async () => {
    const page = await open();
    await goTo(page, 'submissions');
    await page.getByText('No submissions tracked yet').waitFor();
  });

  it.fails('may be in use by a test that runs out of time', { timeout: FREE_MS }, async () => {
    const page = await open();
    continued = page
      .waitForTimeout(2 * FREE_MS)
      .then(() => page.evaluate("location.hash = '#/elsewhere'"));
    await continued;
  });

  it('is another one after a test that ran out of time, which cannot continue in it', async () => {
    const page = await open();
    await goTo(page, 'submissions');
    await expect(continued).rejects.toThrow('closed');
    expect(page.url()).toMatch(/#\/submissions$/);
  });
});
