import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { App } from '../../src/app.ts';
import { clickEach, goTo, SKIPPED, useBrowser } from '../support/app/browser.ts';
import { call, post } from '../support/app/http-calls.ts';
import { API_KEY, openApp, useApp } from '../support/app/running-app.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Returns the texts of what is green in the window. */
const greens = (page: Page) =>
  page.evaluate<string[]>(`[...document.querySelectorAll('body *')]
    .filter((one) => one.checkVisibility() && ['', '::before'].some((part) => {
      const { color, backgroundColor } = getComputedStyle(one, part);
      return [color, backgroundColor].some((text) => {
        const [red, green, blue] = text.match(/\\d+/g).map(Number);
        return green > red + 20 && green > blue + 20;
      });
    }))
    .map((one) => one.textContent)`);
const app = useApp();
const browser = useBrowser();
const cancel = (url: string, id: string) =>
  call(url, `/v1/submissions/${id}`, { method: 'DELETE' });

describe.skipIf(SKIPPED)('the dashboard is live', () => {
  it('reports a lost connection, reconnects by itself, and shows events from the meantime', async () => {
    const database = join(tempFolder(), 'ledger.db');
    // An alert would replace what is announced.
    const tuning = { alertCheckMs: 86_400_000 };
    let running: App = await openApp({ database, tuning });
    onTestFinished(() => running.close());
    const { url } = running;
    const [first, second] = [randomUUID(), randomUUID()];
    await post(url, { submission_ids: [first, second] });
    const page = await browser.openAs(API_KEY, `${url}/#/submissions`);
    const row = page.getByRole('row').filter({ hasText: first });
    await row.getByText('tracking').waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    expect(await greens(page)).toContain('Live');

    await running.close();
    await page.getByText('Disconnected: this page may be outdated').waitFor();
    expect(await row.count(), 'what was there stays').toBe(1);
    await goTo(page, '');
    await page.getByText('Unknown: the server cannot be reached').waitFor();
    expect(await greens(page), 'what is shown as good').toEqual([]);
    expect(await page.locator('.top').evaluate((one) => one.scrollWidth - one.clientWidth)).toBe(0);
    await goTo(page, 'submissions');
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByRole('alert').getByText('Not connected').waitFor();

    running = await openApp({ database, tuning, port: Number(new URL(url).port) });
    await cancel(url, first);
    // The page may have reconnected by itself already.
    await page.getByRole('button', { name: 'Try now' }).evaluateAll(clickEach);
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByRole('status').getByText('Reconnected').waitFor();
    await row.getByText('cancelled').waitFor();
    await cancel(url, second);
    await page.getByRole('row').filter({ hasText: second }).getByText('cancelled').waitFor();
    await page.getByRole('alert').waitFor({ state: 'detached' });
  });

  it('polls the overview rarely and redraws few rows during a burst', async () => {
    const { url, close } = await openApp({ database: join(tempFolder(), 'ledger.db') });
    onTestFinished(close);
    const page = await browser.openAs(API_KEY, url);
    await page.getByText('Live', { exact: true }).waitFor();
    const startedAt = performance.now();
    let requestCount = 0;
    page.on('request', (request) => {
      if (request.url().endsWith('/v1/overview')) requestCount += 1;
    });
    const ids = Array.from({ length: 400 }, () => randomUUID());
    await post(url, { submission_ids: ids });
    for (let done = 0; done < ids.length; done += 20)
      await Promise.all(ids.slice(done, done + 20).map((id) => cancel(url, id)));
    await page.getByRole('link', { name: '400 cancelled' }).waitFor();
    const seconds = (performance.now() - startedAt) / 1_000;
    expect(requestCount).toBeLessThanOrEqual(2 + seconds / 2);
  });

  it('sends no requests while its tab is hidden, and refreshes at once when it is shown', async () => {
    const page = await browser.openAs(API_KEY, app.url);
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 600_000);
    await page.reload();
    // The page works after its next frame.
    await page.clock.runFor(100);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.clock.runFor(100);
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByText('No submissions tracked yet').waitFor();
    // Once connected, it loads again.
    const loaded = page.waitForResponse('**/v1/overview');
    await page.clock.runFor(3_000);
    await loaded;
    const show = (isShown: boolean) =>
      page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${!isShown}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'))`);
    await show(false);
    let requestCount = 0;
    page.on('request', (request) => {
      if (request.url().endsWith('/v1/overview')) requestCount += 1;
    });
    const id = randomUUID();
    await post(app.url, { submission_id: id });
    await cancel(app.url, id);
    await page.clock.runFor(30_000);
    expect(requestCount).toBe(0);
    await show(true);
    await page.clock.runFor(3_000);
    await page.getByRole('link', { name: /\d cancelled$/ }).waitFor();
    expect(requestCount).toBeGreaterThan(0);
  });

  it('connects again after a sleep of the computer, whose connection may be dead', async () => {
    const page = await browser.openAs(API_KEY, app.url);
    await page.clock.install();
    await page.reload();
    await page.getByText('Live', { exact: true }).waitFor();
    await page.clock.runFor(60_000);
    let connections = 0;
    page.on('request', (request) => {
      if (request.url().endsWith('/v1/events')) connections += 1;
    });
    await page.clock.fastForward(3_600_000);
    await expect.poll(() => connections).toBe(1);
    await page.getByText('Live', { exact: true }).waitFor();
  });
});
