import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { goTo, SKIPPED, useBrowser } from '../../support/app/browser.ts';
import { call, post } from '../../support/app/http-calls.ts';
import { ADMIN_TOKEN, AS_ADMIN } from '../../support/app/lookups.ts';
import { untilAlerted } from '../../support/app/notifying-app.ts';
import { API_KEY, openApp, useApp } from '../../support/app/running-app.ts';
import { serve } from '../../support/servers/upstream-server.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const app = useApp({ adminToken: ADMIN_TOKEN });
const browser = useBrowser();
const main = (page: Page) => page.getByRole('main');
const problem = (page: Page) =>
  page.getByRole('region', { name: 'Problems' }).getByRole('listitem').filter({ hasText: TEXT });
const TEXT = 'The upstream default is not responding';
const mutes = (method: string, path = '', body?: object) =>
  call(app.url, `/v1/mutes${path}`, {
    method,
    headers: AS_ADMIN,
    ...(body && { body }),
  });

app.prepare(async () => {
  await post(app.url, { submission_id: randomUUID() });
  await untilAlerted(app.url);
});

describe.skipIf(SKIPPED)('the banner of alerts', () => {
  it('appears on every page when an alert begins, is announced, and links to the page about it', async () => {
    const { url, close } = await openApp({
      database: join(tempFolder(), 'ledger.db'),
      adminToken: ADMIN_TOKEN,
    });
    onTestFinished(close);
    const page = await browser.openAs(ADMIN_TOKEN, `${url}/#/pacing`);
    await page.getByText('Live', { exact: true }).waitFor();
    const banner = page.getByRole('region', { name: 'Alerts', exact: true });
    expect(await banner.count()).toBe(0);
    await post(url, { submission_id: randomUUID() });
    await banner.getByText(TEXT).waitFor();
    await page.getByRole('status').getByText(`Alert: ${TEXT}`).waitFor();
    await goTo(page, 'alerts');
    await main(page).getByText(TEXT).waitFor();
    expect(await banner.count(), 'on the page of alerts').toBe(0);
    await goTo(page, '');
    await problem(page).getByText('Polls resume by themselves when it responds.').waitFor();
    expect(await banner.count(), 'on the overview').toBe(0);
    for (const path of ['submissions', 'webhooks', 'audit']) {
      await goTo(page, path);
      await banner.getByText(TEXT).waitFor();
    }
    await banner.getByRole('link', { name: TEXT }).click();
    await page.getByRole('heading', { name: 'Pacing' }).waitFor();
  });

  it('shows an alert that is not recorded yet, and offers no change of it', async () => {
    const page = await browser.openAs(ADMIN_TOKEN, `${app.url}/#/pacing`);
    await page.route(/v1\/alerts\?limit=100$/, async (route) => {
      const response = await route.fetch();
      const { alerts, next_cursor } = await response.json();
      const inMemory = { ...alerts[0], id: 0, summary: 'The ledger cannot be written' };
      await route.fulfill({ response, json: { alerts: [inMemory], next_cursor } });
    });
    await page.reload();
    const banner = page.getByRole('region', { name: 'Alerts', exact: true });
    await banner.getByText('The ledger cannot be written').waitFor();
    await goTo(page, 'alerts');
    await main(page).getByText('The ledger cannot be written').waitFor();
    expect(
      await main(page)
        .getByRole('button', { name: /^Mute:/ })
        .count(),
    ).toBe(0);
  });

  it('leaves out muted alerts', async () => {
    const until = new Date(Date.now() + 3_600_000).toISOString();
    const { id } = JSON.parse((await mutes('POST', '', { rule: 'upstream_down', until })).text);
    const page = await browser.openAs(API_KEY, `${app.url}/#/pacing`);
    const banner = page.getByRole('region', { name: 'Alerts', exact: true });
    await page.getByText('1 firing').waitFor();
    expect(await banner.count()).toBe(0);
    await mutes('DELETE', `/${id}`);
  });
});

describe.skipIf(SKIPPED)('the page of alerts', () => {
  const HOSTILE = '<img src=x onerror=alert(1)><script>alert(2)</script>';
  const button = (page: Page, name: string) =>
    page.locator('main, dialog').getByRole('button', { name, exact: true });

  const inHours = (hours: number) =>
    new Date(Date.now() + hours * 3_600_000).toISOString().slice(0, 16).replace('T', ' ');
  const open = (path: string) => browser.show(app.url, path);

  it('mutes an alert until a time with a reason, shows both, and ends the mute', async () => {
    const page = await open('alerts');
    await problem(page).getByRole('button', { name: /^Mute/ }).click();
    await page.getByLabel('Until').fill(inHours(-2));
    await page.getByLabel('Reason').fill(HOSTILE);
    await button(page, 'Mute').click();
    await page.getByText('must be in the future').waitFor();
    await page.getByLabel('Until').fill('');
    await button(page, 'Mute').click();
    await page.getByText('write a date and a time').waitFor();
    await page.getByLabel('Until').fill(inHours(2));
    await button(page, 'Mute').click();
    await problem(page).getByText('mute ends').waitFor();
    const mute = page
      .getByRole('region', { name: 'Mutes' })
      .getByRole('row')
      .filter({ hasText: HOSTILE });
    await mute.getByText('upstream_down default').waitFor();
    expect(await main(page).locator('img, script').count()).toBe(0);
    await mute.getByRole('button', { name: /^End/ }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'End' }).click();
    await problem(page).getByRole('button', { name: /^Mute/ }).waitFor();
    await mute.waitFor({ state: 'detached' });
  });

  it('leads from late submissions to a list of those alone', async () => {
    const upstream = await serve(({ url = '' }, response) => {
      const id = new URL(url, 'http://upstream').searchParams.get('submission_id');
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ id, state: 'Pending', error: null, data: null }));
    });
    const { url, close } = await openApp({
      database: join(tempFolder(), 'ledger.db'),
      upstreamUrl: upstream.url,
    });
    onTestFinished(close);
    await post(url, { submission_id: 'early' });
    const yesterday = new Date(Date.now() - 86_400_000).toISOString();
    await post(url, { submission_id: 'late', tracked_at: yesterday });
    const page = await browser.openAs(API_KEY, `${url}/#/alerts`);
    const late = '1 submission of the upstream default has been open for too long';
    await main(page).getByRole('link', { name: late }).click();
    await main(page).getByText('1 submission', { exact: true }).waitFor();
    await main(page).getByRole('link', { name: 'late' }).waitFor();
    expect(await main(page).getByRole('link', { name: 'early' }).count()).toBe(0);
  });

  it('lists resolved alerts', async () => {
    const page = await open('alerts');
    await problem(page).waitFor();
    await page.getByRole('region', { name: 'Resolved' }).getByText('None in the last').waitFor();
  });
});
