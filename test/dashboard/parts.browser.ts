import { randomUUID } from 'node:crypto';
import type { Page, Route } from 'playwright-core';
import { beforeEach, describe, expect, it } from 'vitest';
import { expectCopied, goTo, SKIPPED, useBrowser } from '../support/app/browser.ts';
import { call, post } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN, AS_ADMIN } from '../support/app/lookups.ts';
import { useApp } from '../support/app/running-app.ts';

const app = useApp({ adminToken: ADMIN_TOKEN });
const browser = useBrowser();
let page: Page;

describe.skipIf(SKIPPED)('the parts of the dashboard', () => {
  beforeEach(async () => {
    page = await browser.openForAll(app.url);
  });
  const openSubmission = async (page: Page) => {
    const id = randomUUID();
    await post(app.url, { submission_id: id });
    await goTo(page, `submissions/${id}`);
    await page.getByText('Upstream', { exact: true }).waitFor();
    return id;
  };

  it('copy: puts the text on the clipboard where the browser offers no access to it', async () => {
    const id = await openSubmission(page);
    await page.evaluate(
      "const { clipboard } = navigator; Object.defineProperty(navigator, 'clipboard', { get: () => undefined, configurable: true })",
    );
    await page.getByRole('button', { name: 'Copy the id' }).click();
    expect(await page.evaluate('document.activeElement.ariaLabel'), 'the focus stays').toBe(
      'Copy the id',
    );
    await page.evaluate('delete navigator.clipboard');
    await expectCopied(page, id);
  });

  it('copy: says so for two seconds', async () => {
    const page = await browser.openAs(ADMIN_TOKEN, app.url);
    await page.clock.install();
    await openSubmission(page);
    await page.clock.pauseAt(Date.now() + 600_000);
    await page.getByRole('button', { name: 'Copy the id' }).click();
    const notice = page.getByText('Copied', { exact: true });
    await notice.waitFor();
    await page.clock.runFor(2_000);
    await notice.waitFor({ state: 'detached' });
  });

  it('buttons: keep the focus while their request is in flight, and send it once', async () => {
    await call(app.url, '/v1/webhooks/callbacks', {
      method: 'PATCH',
      headers: AS_ADMIN,
      body: { enabled: false },
    });
    await goTo(page, 'webhooks/callbacks');
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let sent = 0;
    const wait = async (route: Route) => {
      if (route.request().method() === 'GET') return route.continue();
      sent += 1;
      await released;
      return route.continue();
    };
    await page.route('**/v1/webhooks/callbacks', wait);
    const button = page.getByRole('main').getByRole('button', { name: 'Enable' });
    await button.focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => button.getAttribute('aria-disabled')).toBe('true');
    await page.keyboard.press('Enter');
    await page.waitForFunction(
      'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))',
    );
    expect(await page.evaluate('document.activeElement.innerText')).toBe('Enable');
    release();
    await page.getByRole('main').getByText('The webhook receives events again').waitFor();
    expect(sent).toBe(1);
    await page.unroute('**/v1/webhooks/callbacks', wait);
  });

  it('theme: follows the system until the reader chooses one, which the browser keeps', async () => {
    await goTo(page, '');
    const scheme = () =>
      page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor');
    await page.emulateMedia({ colorScheme: 'dark' });
    const dark = await scheme();
    await page.emulateMedia({ colorScheme: 'light' });
    expect(await scheme()).not.toBe(dark);
    await page.getByLabel('Theme').selectOption('Dark theme');
    await expect.poll(scheme).toBe(dark);
    await page.reload();
    await page.getByLabel('Theme').waitFor();
    expect(await scheme()).toBe(dark);
    await page.getByLabel('Theme').selectOption('System theme');
    await expect.poll(scheme).not.toBe(dark);
  });

  it('times: are relative, stay current, and show the absolute time with its zone on hover, after a tap, and all together with a button', async () => {
    const page = await browser.openAs(ADMIN_TOKEN, app.url);
    await page.clock.install();
    await openSubmission(page);
    const time = page.getByRole('main').locator('time').first();
    // Long enough that the test itself changes nothing.
    await page.clock.fastForward(3_700_000);
    await expect.poll(() => time.textContent()).toBe('1 h ago');
    await page.clock.fastForward(3_600_000);
    await expect.poll(() => time.textContent()).toBe('2 h ago');
    const absolute = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/;
    expect(await time.getAttribute('title')).toMatch(absolute);
    expect(await page.locator('time[tabindex]').count(), 'stops of the tab key').toBe(0);
    const [others, withZone] = [page.getByRole('main').locator('time'), /:\d\d UTC$/];
    await time.click();
    await expect.poll(() => time.textContent()).toMatch(absolute);
    expect(await others.nth(1).textContent()).not.toMatch(absolute);
    await time.click();
    await expect.poll(() => time.textContent()).toBe('2 h ago');
    const button = page.getByRole('button', { name: 'Absolute times' });
    await button.click();
    await expect
      .poll(async () => (await others.allTextContents()).every((text) => withZone.test(text)))
      .toBe(true);
    expect(await button.getAttribute('aria-pressed')).toBe('true');
    await button.click();
    await expect.poll(() => time.textContent()).toBe('2 h ago');
  });
});
