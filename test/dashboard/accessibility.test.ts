import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { goTo, SKIPPED, signIn, useBrowser } from '../support/browser.ts';
import { call, post } from '../support/http-calls.ts';
import { ADMIN_TOKEN, SECOND, UPSTREAM_BEARER } from '../support/lookups.ts';
import { openReceiver } from '../support/receiver.ts';
import { useAppWithSandbox } from '../support/running-app.ts';

const AXE = readFileSync(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
const app = useAppWithSandbox({
  adminToken: ADMIN_TOKEN,
  webhooks: { allow: ['127.0.0.0/8'], allow_http: true },
  upstream: { bearer: UPSTREAM_BEARER },
});
const browser = useBrowser();

/** What axe finds on the page as it is, of the levels that shut somebody out. */
async function violations(page: Page, rules?: string[]): Promise<string[]> {
  const options = { resultTypes: ['violations'], ...(rules && { runOnly: rules }) };
  await page.evaluate(`window.axe ?? (() => { ${AXE} })()`);
  const { violations } = await page.evaluate<AxeResults>(`axe.run(${JSON.stringify(options)})`);
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`));
}

const isTooWide = (page: Page) =>
  page.evaluate<boolean>('document.documentElement.scrollWidth > document.documentElement.clientWidth');

/** A submission with a timeline, and a webhook with a dead letter about it. */
async function fill(): Promise<{ id: string; webhookId: string }> {
  const receiver = await openReceiver({ status: 410, body: 'gone' });
  const headers = { 'x-api-key': [], authorization: `Bearer ${ADMIN_TOKEN}` };
  const created = await call(app.url, '/v1/webhooks', { method: 'POST', headers, body: { url: receiver.url } });
  const id = app.submit();
  await post(app.url, { submission_ids: [id, randomUUID()], metadata: { order: 4711 } });
  await call(app.url, `/v1/submissions/${id}/wait?timeout_s=20`);
  return { id, webhookId: (JSON.parse(created.text) as { id: string }).id };
}

describe.skipIf(SKIPPED)('the dashboard shuts nobody out', { timeout: 60_000 }, () => {
  it('axe finds nothing serious on any page, light or dark', async () => {
    const { id, webhookId } = await fill();
    const page = await browser.open(app.url);
    const found: Record<string, string[]> = {};
    const check = async (name: string) => {
      await page.emulateMedia({ colorScheme: 'light' });
      found[name] = await violations(page);
      // Nothing else is different in the dark.
      await page.emulateMedia({ colorScheme: 'dark' });
      found[`${name}, dark`] = await violations(page, ['color-contrast']);
    };
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('No token yet?').click();
    await check('sign-in');
    await signIn(page, ADMIN_TOKEN);

    const look = async (path: string, until: () => Promise<unknown>) => {
      await goTo(page, path);
      await until();
      await check(path);
    };
    await look('', async () => {
      await page.locator('canvas').first().waitFor();
      for (const summary of await page.getByText('As a table').all()) await summary.click();
    });
    await look('submissions', () => page.getByRole('link', { name: id }).waitFor());
    await look('submissions?q=nobody', () => page.getByText('npx dawatch track').waitFor());
    await look(`submissions/${id}`, async () => {
      await page
        .getByText(/fields? of its data/)
        .last()
        .click();
      await page.getByRole('button', { name: /attempts/ }).click();
      await page.getByText('HTTP 410').waitFor();
    });
    await look('submissions/nobody', () => page.getByText('never tracked').waitFor());
    await look('webhooks', () => page.getByRole('link', { name: webhookId }).waitFor());
    await look(`webhooks/${webhookId}`, () => page.getByRole('row').filter({ hasText: id }).waitFor());
    await look('deliveries?state=dead', () => page.getByRole('row').filter({ hasText: id }).waitFor());
    await look('users', async () => {
      await page.getByLabel('Name').fill(SECOND.name);
      await page.getByLabel('E-mail address').fill(SECOND.email);
      await page.getByRole('button', { name: 'Look up' }).click();
      await page.getByRole('button', { name: 'List', exact: true }).click();
      await page.getByRole('table').waitFor();
    });
    await look('nowhere', () => page.getByText('nothing here').waitFor());

    await page.route('**/v1/**', (route) => route.abort());
    await look('submissions?status=failed', () => page.getByRole('alert').getByText('Not connected').waitFor());
    expect(found).toEqual(Object.fromEntries(Object.keys(found).map((path) => [path, []])));
  });

  it('fits a phone: nothing but tables scrolls sideways', async () => {
    const { id, webhookId } = await fill();
    const page = await browser.open(app.url, { viewport: { width: 360, height: 740 } });
    expect(await isTooWide(page)).toBe(false);
    await signIn(page, ADMIN_TOKEN);
    for (const path of ['', 'submissions', `submissions/${id}`, 'webhooks', `webhooks/${webhookId}`, 'users']) {
      await goTo(page, path);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await page.getByRole('table').or(page.getByRole('textbox')).first().waitFor();
      expect(await isTooWide(page), path).toBe(false);
    }
  });

  it('can be used by keyboard alone', async () => {
    const { id } = await fill();
    const page = await browser.open(app.url);
    const focused = () => page.evaluate<string>('document.activeElement.innerText || document.activeElement.id');
    await expect.poll(focused).toBe('token');
    await signIn(page, ADMIN_TOKEN);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.keyboard.press('Tab');
    await expect.poll(focused).toBe('Skip to the content');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('main');
    await page.getByRole('link', { name: 'Submissions', exact: true }).focus();
    await page.keyboard.press('Enter');
    // Not its link, which has the same name.
    await expect.poll(() => page.evaluate('document.activeElement.tagName')).toBe('H1');
    // The search, the status, the button, the table, its first row.
    for (let step = 0; step < 3; step++) await page.keyboard.press('Tab');
    await expect.poll(focused).toBe('Refresh');
    await page.getByRole('link', { name: id }).focus();
    await page.keyboard.press('Enter');
    await expect.poll(focused).toBe(id);
    // The title changes after the drawing, as the focus does.
    await expect.poll(() => page.title()).toBe(`${id} · dawatch`);
  });
});
