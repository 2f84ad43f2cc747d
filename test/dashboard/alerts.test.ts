import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { goTo, SKIPPED, signIn, useBrowser } from '../support/app/browser.ts';
import { call, post } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { API_KEY, useApp } from '../support/app/running-app.ts';

const app = useApp({ adminToken: ADMIN_TOKEN });
const browser = useBrowser();
const TEXT = 'The upstream default is not responding';
const mutes = (method: string, path = '', body?: object) =>
  call(app.url, `/v1/mutes${path}`, {
    method,
    headers: { 'x-api-key': [], authorization: `Bearer ${ADMIN_TOKEN}` },
    ...(body && { body }),
  });

describe.skipIf(SKIPPED)('the banner of alerts', { timeout: 60_000 }, () => {
  it('appears on every page when an alert begins, is announced, and links to the page about it', async () => {
    const page = await browser.open(`${app.url}/#/pacing`);
    await signIn(page, ADMIN_TOKEN);
    await page.getByText('Live', { exact: true }).waitFor();
    const banner = page.getByRole('region', { name: 'Alerts' });
    expect(await banner.count()).toBe(0);
    await post(app.url, { submission_id: randomUUID() });
    await banner.getByText(TEXT).waitFor();
    await page.getByRole('status').getByText(`Alert: ${TEXT}`).waitFor();
    for (const path of ['submissions', 'webhooks', 'deliveries', 'users']) {
      await goTo(page, path);
      await banner.getByText(TEXT).waitFor();
    }
    await banner.getByRole('link', { name: TEXT }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });

  it('folds an acknowledged alert, and shows it again when that is withdrawn', async () => {
    const page = await browser.open(app.url);
    await signIn(page, ADMIN_TOKEN);
    const banner = page.getByRole('region', { name: 'Alerts' });
    await banner.getByRole('button', { name: `Acknowledge: ${TEXT}` }).click();
    await banner.getByText('1 acknowledged').click();
    await banner.getByText('acknowledged by DAWATCH_ADMIN_TOKEN').waitFor();
    await banner.getByRole('button', { name: 'Withdraw acknowledgement' }).click();
    await banner.getByRole('button', { name: `Acknowledge: ${TEXT}` }).waitFor();
  });

  it('offers no change to a service, and folds muted alerts', async () => {
    const until = new Date(Date.now() + 3_600_000).toISOString();
    const { id } = JSON.parse((await mutes('POST', '', { rule: 'upstream_down', until })).text);
    const page = await browser.open(app.url);
    await signIn(page, API_KEY);
    const banner = page.getByRole('region', { name: 'Alerts' });
    await banner.getByText('1 muted').click();
    await banner.getByText('muted until').waitFor();
    expect(await banner.getByRole('button').count()).toBe(0);
    await mutes('DELETE', `/${id}`);
  });
});
