import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Page, Route } from 'playwright-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { TYPES } from '../../../src/dashboard/page/data/feed.js';
import { EVENT_TYPES, TestEventType } from '../../../src/submissions/event-types.ts';
import {
  clearFilters,
  expectCopied,
  SKIPPED,
  setFilter,
  useBrowser,
} from '../../support/app/browser.ts';
import { ADMIN_TOKEN } from '../../support/app/lookups.ts';
import { useNotifyingApp } from '../../support/app/notifying-app.ts';
import { openApp } from '../../support/app/running-app.ts';
import { openReceiver } from '../../support/servers/receiver.ts';
import { deadAddress } from '../../support/servers/upstream-server.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const app = useNotifyingApp();
const browser = useBrowser();
const HOSTILE = '<img src=x onerror=alert(1)><script>alert(2)</script>';
const main = (page: Page) => page.getByRole('main');
const button = (page: Page, name: string) =>
  page.locator('main, dialog').getByRole('button', { name, exact: true });
const rowOf = (page: Page, text: string) => main(page).getByRole('row').filter({ hasText: text });

app.prepare(async () => {
  // The announcement of an alert would replace that of a result.
  const until = new Date(Date.now() + 86_400_000).toISOString();
  expect((await app.admin('POST', '/v1/mutes', { until })).status).toBe(201);
});

/** Opens a page as an admin, in one tab for all tests. */
async function open(path: string): Promise<Page> {
  const page = await browser.show(app.url, path);
  await page.getByRole('heading', { level: 1 }).waitFor();
  return page;
}

/** Responds with a problem to the requests that change something. */
async function failing(
  page: Page,
  url: string,
  { status, detail, headers = {} }: Failure,
): Promise<() => Promise<void>> {
  const fail = (route: Route) =>
    route.request().method() === 'GET'
      ? route.fallback()
      : route.fulfill({
          status,
          headers,
          contentType: 'application/problem+json',
          body: JSON.stringify({ detail }),
        });
  await page.route(url, fail);
  return () => page.unroute(url, fail);
}
type Failure = { status: number; detail: string; headers?: Record<string, string> };

/** Creates a webhook whose receiver sends these responses. */
async function webhook(...responses: { status?: number; headers?: Record<string, string> }[]) {
  const receiver = await openReceiver(responses.length > 0 ? responses : {});
  const of = randomUUID();
  const { id } = await app.create({ url: receiver.url, metadata: { of } });
  const cancel = (...ids: string[]) => app.cancelled(ids, { metadata: { of } });
  return { receiver, id, cancel };
}

it('the page knows every type of event', () => {
  expect(TYPES).toEqual(
    EVENT_TYPES.filter((type) => !(Object.values(TestEventType) as string[]).includes(type)),
  );
});

describe.skipIf(SKIPPED)('webhooks in the dashboard', () => {
  it('are created with every option, and the secret is shown once', async () => {
    const page = await open('webhooks');
    await button(page, 'Create a webhook').click();
    const url = 'https://hooks.example.com/?<script>alert(3)</script>';
    await page.getByLabel('URL').fill(url);
    await page.getByLabel('Events', { exact: true }).fill('upstream.*, submission.failed');
    await page.getByLabel('Metadata filter').fill(JSON.stringify({ team: HOSTILE, tier: 1 }));
    await page.getByLabel('Description').fill(HOSTILE);
    const headers = page.getByLabel('Further headers');
    await headers.fill('{"Host": "x"}');
    await page.getByLabel('Enabled').uncheck();
    await button(page, 'Create webhook').click();
    await page.getByText('dawatch sets this one itself').waitFor();
    await headers.fill('{"X-Tenant": "the-value-of-the-header"}');
    await button(page, 'Create webhook').click();
    await page.getByRole('heading', { name: 'Secret of the receiver' }).waitFor();
    const secret = (await main(page).locator('section.secret pre').textContent()) ?? '';
    expect(secret).toMatch(/^whsec_/);
    await page.getByRole('button', { name: 'Copy the secret' }).click();
    await expectCopied(page, secret);
    await page.getByRole('link', { name: 'Continue to' }).click();
    await main(page).getByText('X-Tenant', { exact: true }).waitFor();
    await main(page).getByText(HOSTILE, { exact: true }).waitFor();
    await main(page).getByText(url).waitFor();
    expect(await main(page).locator('img, script').count()).toBe(0);
    for (const text of [secret, 'the-value-of-the-header'])
      expect(await page.getByText(text).count()).toBe(0);
    const id = page.url().split('/').at(-1);
    expect(JSON.parse((await app.admin('GET', `/v1/webhooks/${id}`)).text)).toMatchObject({
      url,
      types: ['upstream.*', 'submission.failed'],
      metadata: { team: HOSTILE, tier: 1 },
      description: HOSTILE,
      header_names: ['X-Tenant'],
      enabled: false,
    });
  });

  it('show what is refused at the field, keep what was typed, and report everything else above the button', async () => {
    const page = await open('webhooks');
    await button(page, 'Create a webhook').click();
    const url = page.getByLabel('URL');
    await url.fill('ftp://hooks.example.com/');
    await page.getByLabel('Description').fill('kept');
    await button(page, 'Create webhook').click();
    await page.getByRole('alert').getByText('Correct the marked fields').waitFor();
    await expect.poll(() => url.evaluate((field) => field === document.activeElement)).toBe(true);
    expect(await url.getAttribute('aria-invalid')).toBe('true');
    await url.fill('https://hooks.example.com/');
    await page.getByLabel('Metadata filter').fill('team=billing');
    await button(page, 'Create webhook').click();
    await page.getByText('is not valid JSON').waitFor();
    await page.getByLabel('Metadata filter').fill('');
    const tooMany = { status: 429, detail: 'too many requests', headers: { 'retry-after': '7' } };
    const repair = await failing(page, '**/v1/webhooks', tooMany);
    await button(page, 'Create webhook').click();
    await page.getByRole('alert').getByText('too many requests Try again in 7 s.').waitFor();
    await repair();
    const lose = (route: Route) =>
      route.request().method() === 'POST' ? route.abort() : route.fallback();
    await page.route('**/v1/webhooks', lose);
    await button(page, 'Create webhook').click();
    await page.getByRole('alert').getByText('The change may have been made').waitFor();
    await page.unroute('**/v1/webhooks', lose);
    expect(await page.getByLabel('Description').inputValue()).toBe('kept');
    await button(page, 'Create webhook').click();
    await page.getByRole('heading', { name: 'Secret of the receiver' }).waitFor();
  });

  it('are edited: only changed fields are sent', async () => {
    const { id, receiver } = await webhook();
    const page = await open(`webhooks/${id}`);
    await button(page, 'Edit').click();
    expect(await page.getByLabel('URL').inputValue()).toBe(receiver.url);
    await page.getByLabel('Description').fill('billing');
    await page.getByLabel('Events', { exact: true }).fill('submission.*, alert.*');
    const sent = page.waitForRequest((request) => request.method() === 'PATCH');
    await button(page, 'Save').click();
    expect((await sent).postDataJSON()).toEqual({
      types: ['submission.*', 'alert.*'],
      description: 'billing',
    });
    await main(page).getByText('submission.*, alert.*').waitFor();
    await expect.poll(() => page.evaluate('document.activeElement.innerText')).toBe('Edit');
  });

  it('get a new secret while the old one still signs', async () => {
    const { id } = await webhook();
    const page = await open(`webhooks/${id}`);
    await button(page, 'Rotate secret').click();
    await page.getByLabel('The old secret').selectOption('for an hour');
    await page.getByLabel('Own secret').fill('whsec_short');
    await button(page, 'Rotate').click();
    await page.getByRole('alert').getByText('Correct the marked fields').waitFor();
    await page.getByLabel('Own secret').fill('');
    const sent = page.waitForRequest(`**/v1/webhooks/${id}/rotate`);
    await button(page, 'Rotate').click();
    expect((await sent).postDataJSON()).toEqual({ keep_old_s: 3_600 });
    await page.getByText(/^whsec_\S/).waitFor();
    await button(page, 'I have stored it').click();
    await page.getByText(/^whsec_\S/).waitFor({ state: 'detached' });
  });

  it('are tested, disabled and enabled, and show the result of the test', async () => {
    // It is not tried again meanwhile.
    const failure = { status: 500, headers: { 'retry-after': '3600' } };
    const { receiver, id } = await webhook({}, failure);
    const page = await open(`webhooks/${id}`);
    await page.getByText('No deliveries yet').waitFor();
    await page.getByText('no deliveries', { exact: true }).waitFor();
    await button(page, 'Send test event').click();
    await main(page)
      .getByText(/^Delivered in \d+ ms: HTTP 200/)
      .waitFor();
    await rowOf(page, 'webhook.test').getByText('delivered').waitFor();
    await button(page, 'Send test event').click();
    await main(page)
      .getByText(/^Not delivered: .*500/)
      .waitFor();
    expect(receiver.requests).toHaveLength(2);
    await main(page)
      .getByText(/^50 % · p95 \S+ s$/)
      .waitFor();
    await page.getByRole('link', { name: 'Failing' }).click();
    await expect.poll(() => rowOf(page, 'webhook.test').count()).toBe(1);
    await rowOf(page, 'webhook.test')
      .getByRole('button', { name: /^Try now/ })
      .waitFor();
    await button(page, 'Disable').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click();
    await page.getByText('by an operator').waitFor();
    await button(page, 'Enable').click();
    await main(page).getByText('The webhook receives events again').waitFor();
  });

  it('are deleted after a confirmation', async () => {
    const { id } = await webhook();
    const page = await open(`webhooks/${id}`);
    await button(page, 'Delete this webhook').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { name: 'Webhooks' }).waitFor();
    expect((await app.admin('GET', `/v1/webhooks/${id}`)).status).toBe(404);
  });

  it('of callbacks are tested with an address', async () => {
    const receiver = await openReceiver();
    const page = await open('webhooks/callbacks');
    await button(page, 'Test a callback').click();
    expect(await button(page, 'Delete this webhook').count()).toBe(0);
    await page.getByLabel('Callback address').fill(receiver.url);
    await button(page, 'Send test event').click();
    await main(page)
      .getByText(/^Delivered in/)
      .waitFor();
    expect(receiver.requests).toHaveLength(1);
  });
});

describe.skipIf(SKIPPED)('deliveries in the dashboard', () => {
  it('are filtered by every field, and the filters are in the address', async () => {
    const { id, cancel } = await webhook();
    const [one, two] = [`one-${randomUUID()}`, `two-${randomUUID()}`];
    await cancel(one, two);
    const other = `other-${randomUUID()}`;
    await (await webhook()).cancel(other);
    const page = await open('deliveries');
    const apply = (label: string, value: string) => setFilter(page, label, value);
    await rowOf(page, other).first().waitFor();
    for (const each of [one, two])
      await rowOf(page, each).filter({ hasText: id }).getByText('delivered').waitFor();
    await apply('Destination', `webhook:${id}`);
    await expect.poll(() => rowOf(page, other).count()).toBe(0);
    await expect.poll(() => rowOf(page, id).count()).toBe(2);
    await apply('Submission ID', one);
    await rowOf(page, two).waitFor({ state: 'detached' });
    await rowOf(page, one).waitFor();
    await apply('State', 'dead');
    await page.getByText('Nothing matches the filters').waitFor();
    await apply('State', 'delivered');
    await rowOf(page, one).waitFor();
    const { hash } = new URL(page.url());
    const query = new URLSearchParams(hash.split('?')[1]);
    expect(Object.fromEntries(query)).toEqual({
      destination: `webhook:${id}`,
      submission_id: one,
      state: 'delivered',
    });
    await apply('Submission ID', 'never');
    await page.getByText('Nothing matches the filters').waitFor();
    await clearFilters(page);
    await rowOf(page, two).filter({ hasText: id }).waitFor();
  });

  it('are not shown, nor replayed, for a wrong name in the address', async () => {
    const { id } = await webhook();
    const page = await open(`webhooks/${id}?state=dead&type=submission.failed`);
    await page.getByRole('alert').getByText('type').waitFor();
    expect(await page.getByRole('button', { name: 'Replay dead letters' }).count()).toBe(0);
  });

  it('name the webhook by its description, and dead letters are replayed together', async () => {
    const description = `Orders ${randomUUID()}`;
    const { receiver, id, cancel } = await webhook({ status: 410 }, {});
    await app.admin('PATCH', `/v1/webhooks/${id}`, { description });
    await cancel(randomUUID());
    await expect
      .poll(async () => (await app.deliveries(`destination=webhook:${id}&state=dead`)).length)
      .toBe(1);
    const page = await open('deliveries?state=dead');
    await rowOf(page, description).getByText('its receiver is gone').waitFor();
    await rowOf(page, description).getByRole('link', { name: description }).click();
    await button(page, 'Enable').click();
    await main(page).getByText('The webhook receives events again').waitFor();
    const dialog = page.getByRole('dialog');
    expect(await button(page, 'Replay dead letters').count()).toBe(0);
    await page.getByRole('link', { name: 'Dead letters', exact: true }).click();
    await button(page, 'Replay dead letters').click();
    await dialog.getByText(`All dead letters of webhook:${id}`).waitFor();
    await dialog.getByRole('button', { name: 'Back' }).click();
    expect(receiver.requests).toHaveLength(1);
    await button(page, 'Replay dead letters').click();
    await dialog.getByRole('button', { name: 'Replay', exact: true }).click();
    await main(page).getByText('1 waits to be sent again').waitFor();
    await expect.poll(() => receiver.requests.length).toBe(2);
    await page.getByText('Nothing matches the filters').waitFor();
    expect(await button(page, 'Replay dead letters').getAttribute('aria-disabled')).toBe('true');
  });

  it('that wait for a retry are counted by error, and replayed together', async () => {
    const { id, cancel } = await webhook({ status: 400 });
    await cancel(randomUUID(), randomUUID());
    await expect
      .poll(async () => (await app.deliveries(`destination=webhook:${id}&state=failing`)).length)
      .toBe(2);
    const page = await open(`webhooks/${id}`);
    const failures = page.getByRole('region', { name: 'Failures by error' });
    const group = failures.getByRole('row').filter({ hasText: '2 failing' });
    await group.getByRole('button', { name: 'Replay: responded with 400' }).click();
    await page.getByRole('dialog').getByText('All deliveries with this error').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click();
    await page.getByRole('status').getByText('2 wait to be sent again.').waitFor();
  });

  it('that failed are counted by error, and those with an error are replayed', async () => {
    const { receiver, id, cancel } = await webhook({ status: 410 }, {});
    await cancel(randomUUID());
    await expect
      .poll(async () => (await app.deliveries(`destination=webhook:${id}&state=dead`)).length)
      .toBe(1);
    // More than the list shows.
    await cancel(...Array.from({ length: 60 }, () => randomUUID()));
    const page = await open(`webhooks/${id}`);
    const failures = page.getByRole('region', { name: 'Failures by error' });
    const group = failures
      .getByRole('row')
      .filter({ hasText: '410' })
      .filter({ hasText: '1 dead' });
    const unsent = failures.getByRole('row').filter({ hasText: 'No attempt was made' });
    await unsent.filter({ hasText: '60 dead' }).waitFor();
    await button(page, 'Enable').click();
    await main(page).getByText('The webhook receives events again').waitFor();
    await group.getByRole('button', { name: /^Replay: / }).click();
    await page.getByRole('dialog').getByText('All deliveries with this error').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click();
    await group.waitFor({ state: 'detached' });
    await expect.poll(() => receiver.requests.length).toBe(2);
    await unsent.waitFor();
  });

  it('show the response of a receiver as text', async () => {
    const receiver = await openReceiver({ body: HOSTILE });
    const { id } = await app.create({ url: receiver.url, metadata: { of: HOSTILE } });
    const answered = randomUUID();
    await app.cancelled([answered], { metadata: { of: HOSTILE } });
    const page = await open(`webhooks/${id}`);
    await rowOf(page, answered).getByText('delivered').waitFor();
    await rowOf(page, answered)
      .getByRole('link', { name: /^Delivery/ })
      .click();
    await main(page).locator('pre').getByText(HOSTILE, { exact: true }).waitFor();
    expect(await main(page).locator('img, script').count()).toBe(0);
  });
});

describe.skipIf(SKIPPED)('channels in the dashboard', () => {
  it('show whether they work, and are tested', async () => {
    const receiver = await openReceiver();
    const own = await openApp({
      database: join(tempFolder(), 'dawatch.db'),
      adminToken: ADMIN_TOKEN,
      webhooks: { allow: ['127.0.0.0/8'], allow_http: true },
      channels: {
        works: { type: 'slack', url: receiver.url },
        broken: { type: 'slack', url: await deadAddress() },
      },
      routes: [{ types: ['alert.*'], metadata: { team: HOSTILE }, channels: ['works'] }],
    });
    onTestFinished(() => own.close());
    const page = await browser.openAs(ADMIN_TOKEN, `${own.url}/#/channels`);
    await rowOf(page, 'works').getByText(HOSTILE).waitFor();
    await rowOf(page, 'broken').getByText('none: no route selects it').waitFor();
    await rowOf(page, 'works').getByText('not used yet').waitFor();
    await button(page, 'Send test event: works').click();
    await rowOf(page, 'works')
      .getByText(/^Delivered in/)
      .waitFor();
    await rowOf(page, 'works').getByText('working').waitFor();
    await button(page, 'Send test event: broken').click();
    await rowOf(page, 'broken')
      .getByText(/^Not delivered/)
      .waitFor();
    await rowOf(page, 'broken').getByText('failing').waitFor();
    await rowOf(page, 'broken').getByRole('link', { name: '1' }).click();
    await main(page)
      .getByRole('row')
      .filter({ hasText: 'channel:broken' })
      .getByText('failing')
      .waitFor();

    expect(receiver.requests).toHaveLength(1);
  });
});
