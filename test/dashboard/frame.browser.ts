import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { goTo, SKIPPED, useBrowser } from '../support/app/browser.ts';
import { call, post } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN, AS_ADMIN } from '../support/app/lookups.ts';
import { createWebhook, untilAlerted } from '../support/app/notifying-app.ts';
import { useApp } from '../support/app/running-app.ts';

const app = useApp({
  adminToken: ADMIN_TOKEN,
  webhooks: { allow: ['127.0.0.0/8'], allow_http: true },
  channels: {
    'operators-of-the-shop': {
      type: 'slack',
      url: 'https://chat.example.com/operators',
    },
    managers: {
      ...{ type: 'email', smtp_url: 'smtp://mail.example.com' },
      ...{ from: 'dawatch@example.com', to: ['the-managers-of-the-shop@example.com'] },
    },
  },
  routes: [
    {
      types: ['submission.failed', 'submission.expired', 'upstream.unauthorized'],
      channels: ['managers'],
    },
  ],
});
const browser = useBrowser();
const PHONE = { width: 390, height: 844 };
const LAPTOP = { width: 1_280, height: 800 };
const main = (page: Page) => page.getByRole('main');
const LONG_ID = 'order-'.repeat(21);

/** Opens a page as an admin, in one tab for all tests. */
async function open(path = '', viewport = LAPTOP): Promise<Page> {
  const page = await browser.openForAll(app.url);
  await page.setViewportSize(viewport);
  await page.waitForFunction(`innerWidth === ${viewport.width}`);
  await goTo(page, path);
  // The heading of a page gets the focus when it opens.
  await page.locator('h1:focus').waitFor();
  return page;
}

/**
 * Creates submissions with long ids and texts, and a webhook with a failing delivery. Returns the
 * id of the webhook.
 */
async function fill(): Promise<string> {
  const token = { name: 'deploys-'.repeat(8), role: 'service' };
  await call(app.url, '/v1/credentials', { method: 'POST', headers: AS_ADMIN, body: token });
  const { id } = await createWebhook(app.url, {
    url: `http://127.0.0.1:80/${'hooks/'.repeat(30)}`,
    description: 'Orders of the shop in Berlin',
  });
  await post(app.url, {
    submission_ids: [LONG_ID, randomUUID()],
    metadata: { [LONG_ID]: LONG_ID },
  });
  await call(app.url, `/v1/submissions/${LONG_ID}`, { method: 'DELETE' });
  // The upstream does not respond.
  await untilAlerted(app.url);
  return id;
}

/** Opens every page of the navigation, and those of single items. */
async function visitAll(
  page: Page,
  webhookId: string,
  check: (path: string) => Promise<void>,
): Promise<void> {
  const links = await page.evaluate<string[]>(
    `[...document.querySelectorAll('nav[aria-label="Pages"] a')].map((link) => link.getAttribute('href').slice(2))`,
  );
  expect(links.length).toBeGreaterThan(6);
  for (const path of [...links, `submissions/${LONG_ID}`, `webhooks/${webhookId}`]) {
    await goTo(page, path);
    await expect.poll(() => page.locator('main .state[role="status"]').count()).toBe(0);
    await check(path);
  }
}

/** Returns what exceeds the window, or scrolls sideways in it. */
const tooWide = (page: Page) =>
  page.evaluate<string[]>(`[...document.querySelectorAll('html, .wide, section, dialog')]
    .filter((one) => one.scrollWidth > one.clientWidth + 1)
    .map((one) => one.tagName + ' ' + (one.getAttribute('aria-label') ?? one.id))`);

/** Returns the shortened ids without their end. */
const endless = (page: Page) =>
  page.evaluate<string[]>(`[...document.querySelectorAll('a:has(> .start)')]
    .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth)
    .map((one) => one.innerText)`);

/** Returns what of an open dialog is outside of it or of the window, or is cut. */
const cutIn = (page: Page) =>
  page.evaluate<string[]>(`(() => {
    const dialog = document.querySelector('dialog');
    const { left, right } = dialog.getBoundingClientRect();
    return [dialog, ...dialog.querySelectorAll('*')]
      .filter((one) => one.checkVisibility() && !one.matches('input, textarea'))
      .filter((one) => {
        const box = one.getBoundingClientRect();
        const isOutside = box.left < Math.max(0, left) || box.right > Math.min(innerWidth, right);
        return isOutside || one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== 'inline';
      })
      .map((one) => one.tagName + ' ' + one.textContent);
  })()`);

/** Returns the texts of rows with several lines. */
const tallRows = (page: Page) =>
  page.evaluate<string[]>(`[...document.querySelectorAll('tbody tr:has(> th)')]
    .filter((one) => one.getBoundingClientRect().height > 36)
    .map((one) => one.innerText)`);

/**
 * Returns the controls in the window that a finger misses: lower than 44 px, or outside of the
 * window.
 */
const missed = (page: Page) =>
  page.evaluate<
    string[]
  >(`[...document.querySelectorAll('button, select, input:not([type="checkbox"], [type="radio"]), nav a')]
    .filter((one) => one.checkVisibility())
    .map((one) => [one.innerText || one.outerHTML, one.getBoundingClientRect()])
    .filter(([, { height, left, right }]) => height < 43.5 || left < 0 || right > innerWidth)
    .map(([text, { height }]) => text + ' is ' + height + ' px high')`);

describe.skipIf(SKIPPED)('the layout', () => {
  let webhookId = '';
  app.prepare(async () => {
    webhookId = await fill();
  });

  it('fits a phone: nothing scrolls sideways on any page, and every control is large enough for a finger', async () => {
    const page = await open('', PHONE);
    await visitAll(page, webhookId, async (path) => {
      expect(await tooWide(page), path).toEqual([]);
      expect(await missed(page), path).toEqual([]);
    });
  });

  it.each([768, 1_140, 1_280])(
    'fits a window of %i px: no state, no action and no end of an id is outside of it, and rows have one line',
    async (width) => {
      const page = await open('', { width, height: 1_024 });
      await visitAll(page, webhookId, async (path) => {
        expect(await tooWide(page), path).toEqual([]);
        expect(await tallRows(page), path).toEqual([]);
        expect(await endless(page), path).toEqual([]);
      });
    },
  );

  it.each([390, 768, 1_440])('shows every dialog whole in a window of %i px', async (width) => {
    const page = await open('', { width, height: 900 });
    const dialog = page.locator('body > dialog');
    const titles: string[] = [];
    await visitAll(page, webhookId, async (path) => {
      const buttons = main(page).locator('[aria-haspopup="dialog"]:not([aria-disabled="true"])');
      for (const button of await buttons.all()) {
        if (!(await button.isVisible())) continue;
        await button.click();
        titles.push(await dialog.getByRole('heading').innerText());
        expect(await cutIn(page), `${path}: ${titles.at(-1)}`).toEqual([]);
        await page.keyboard.press('Escape');
        await dialog.waitFor({ state: 'detached' });
      }
    });
    for (const title of [/^Create a token/, /^Revoke: /, /^Mute: /, /^Change the options/])
      expect(titles.join('\n')).toMatch(new RegExp(title, 'm'));
  });

  it('does not scroll a page that is shorter than the window', async () => {
    const page = await open('users', LAPTOP);
    const height = await page.evaluate('document.documentElement.scrollHeight');
    expect(height).toBe(LAPTOP.height);
  });

  it('shows the sign-in and its command whole on a phone', async () => {
    const page = await browser.open(app.url);
    await page.setViewportSize(PHONE);
    await page.getByText('No token yet?').click();
    const command = page.getByText('npx dawatch token create');
    expect(await command.evaluate((one) => one.scrollWidth > one.clientWidth)).toBe(false);
    expect(await tooWide(page)).toEqual([]);
  });

  it('shows the state and the actions of each row on a phone', async () => {
    const page = await open('deliveries', PHONE);
    expect(await page.getByLabel('Destination').isVisible(), 'filters before the list').toBe(false);
    const row = page.getByRole('row').filter({ hasText: LONG_ID }).first();
    for (const part of [
      row.getByText('failing', { exact: true }),
      row.getByRole('button', { name: 'Try now' }),
    ]) {
      const box = await part.boundingBox();
      expect(box?.x).toBeGreaterThanOrEqual(0);
      expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(PHONE.width);
    }
  });

  it('shows at least 14 submissions in a small window, and a page of them on a phone in 4,000 px', async () => {
    await post(app.url, { submission_ids: Array.from({ length: 50 }, () => randomUUID()) });
    const page = await open('submissions', LAPTOP);
    const rows = page.getByRole('main').locator('tbody tr');
    await expect.poll(() => rows.count()).toBe(50);
    const last = await rows.nth(13).boundingBox();
    expect((last?.y ?? 0) + (last?.height ?? 0)).toBeLessThanOrEqual(LAPTOP.height);
    await page.setViewportSize(PHONE);
    await page.waitForFunction(`innerWidth === ${PHONE.width}`);
    const height = await page.evaluate<number>('document.documentElement.scrollHeight');
    expect(height).toBeLessThanOrEqual(4_000);
  });

  it('has a menu on a phone, which closes with a navigation and with Escape', async () => {
    const page = await open('', PHONE);
    const menu = page.getByRole('button', { name: 'Menu' });
    const links = page.getByRole('navigation', { name: 'Pages', exact: true }).getByRole('link');
    expect(await links.count()).toBe(0);
    await menu.click();
    expect(await missed(page)).toEqual([]);
    await links.getByText('Submissions').click();
    await page.getByRole('heading', { name: 'Submissions' }).waitFor();
    await expect.poll(() => links.count()).toBe(0);
    await menu.press('Enter');
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => links.count()).toBe(0);
  });
});
