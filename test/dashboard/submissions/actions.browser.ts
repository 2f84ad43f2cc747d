import { randomUUID } from 'node:crypto';
import type { Page, Route } from 'playwright-core';
import { beforeEach, describe, expect, it } from 'vitest';
import { toUtcText } from '../../../src/dashboard/page/parts/form.js';
import { expectCopied, goTo, SKIPPED, signIn, useBrowser } from '../../support/app/browser.ts';
import { call, detailsOf, pathOf, post } from '../../support/app/http-calls.ts';
import { ADMIN_TOKEN, AS_ADMIN } from '../../support/app/lookups.ts';
import { useAppWithSandbox } from '../../support/app/running-app.ts';

/** Its upstream has none of the submissions. */
const app = useAppWithSandbox({
  adminToken: ADMIN_TOKEN,
  webhooks: { allow: ['127.0.0.0/8'], allow_http: true },
});
/** In ten days, with a fraction of a second, which the form does not show. */
const DEADLINE = new Date(Date.now() + 864_000_000).toISOString().replace(/\.\d+/, '.678');
const browser = useBrowser();
let page: Page;
const main = () => page.getByRole('main');
const button = (name: string) => main().getByRole('button', { name, exact: true });
const dialog = () => page.getByRole('dialog');
const fact = (name: string) =>
  main()
    .locator('dl.facts > div', { has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) })
    .locator('dd');
const detailsNow = async (id: string) =>
  detailsOf(await call(app.url, pathOf(id), { headers: AS_ADMIN }));
const save = () => dialog().getByRole('button', { name: 'Save' }).click();

/** Tracks a submission and shows its page. */
async function open(options: object = {}): Promise<string> {
  const id = randomUUID();
  await post(app.url, { submission_id: id, ...options });
  await goTo(page, `submissions/${id}`);
  await page.getByRole('heading', { name: id }).waitFor();
  await button('Change options').waitFor();
  return id;
}

/** Answers the next matching requests of this method. */
async function answer(method: string, status: number, json: object): Promise<() => Promise<void>> {
  const handler = (route: Route) =>
    route.request().method() === method ? route.fulfill({ status, json }) : route.continue();
  await page.route(/v1\/submissions/, handler);
  return () => page.unroute(/v1\/submissions/, handler);
}

describe.skipIf(SKIPPED)('actions on one submission in a browser', () => {
  beforeEach(async () => {
    page = await browser.openForAll(app.url);
  });

  it('shows every option and the precise state', async () => {
    await open({
      unknown_grace_s: 300,
      stuck_after_s: 5_400,
      deadline: DEADLINE,
      callback_url: 'http://127.0.0.1:9009/hook?secret=1',
      data_hash: `0x${'a'.repeat(64)}`,
    });
    await fact('Status').getByText('tracking').waitFor();
    await fact('Not-found grace').getByText('5 min').waitFor();
    await fact('Stuck after').getByText('1 h 30 min').waitFor();
    for (const name of ['Last response', 'Next poll', 'Not found since'])
      await fact(name).locator('time').waitFor();
    expect(await fact('Deadline').locator('time').getAttribute('datetime')).toBe(DEADLINE);
    await fact('Callback URL').getByText('http://127.0.0.1:9009/hook?secret=1').waitFor();
    await fact('Data hash')
      .getByText(`0x${'a'.repeat(64)}`)
      .waitFor();
  });

  it('offers no changes to a credential that may only read', async () => {
    const id = await open();
    const reader = await browser.open(`${app.url}/#/submissions/${id}`);
    const rights = { role: 'operator', name: 'reader', users_bearer: 'dawatch' };
    await reader.route('**/v1/whoami', (route) => route.fulfill({ json: rights }));
    await signIn(reader, ADMIN_TOKEN);
    await reader.getByText('Not-found grace').waitFor();
    expect(
      await reader.getByRole('button', { name: /Cancel|Retrack|Change options/ }).count(),
    ).toBe(0);
  });

  it('copies the id and metadata', async () => {
    const metadata = { 'a.b=c "d"': 'x"y', nested: { list: [1] } };
    const id = await open({ metadata });
    for (const [name, text] of [
      ['the id', id],
      ['a.b=c "d"', 'x"y'],
      ['nested', '{"list":[1]}'],
      ['Metadata as JSON', JSON.stringify(metadata, null, 2)],
    ] as const) {
      await button(`Copy ${name}`).click();
      await expectCopied(page, text);
    }
  });

  it('cancels after confirmation, and tracks again; a failed request can be repeated', async () => {
    const id = await open();
    await button('Cancel tracking').click();
    await page.keyboard.press('Escape');
    await dialog().waitFor({ state: 'detached' });
    expect(await detailsNow(id)).toMatchObject({ status: 'tracking' });
    await button('Cancel tracking').click();
    const restore = await answer('DELETE', 500, { detail: 'the log has the reason' });
    await dialog().getByRole('button', { name: 'Cancel tracking' }).click();
    await dialog().getByRole('alert').getByText('the log has the reason').waitFor();
    await restore();
    await dialog().getByRole('button', { name: 'Cancel tracking' }).click();
    await main().getByText('Cancelled.', { exact: true }).waitFor();
    await fact('Status').getByText('cancelled').waitFor();
    await expect
      .poll(() => page.evaluate('document.activeElement.innerText'))
      .toBe('Cancel tracking');
    expect(await button('Cancel tracking').getAttribute('aria-disabled')).toBe('true');

    await button('Retrack').click();
    await dialog().getByRole('button', { name: 'Retrack' }).click();
    await main().getByText('Tracked again.').waitFor();
    await fact('Status').getByText('tracking').waitFor();
    expect((await detailsNow(id)).history).toHaveLength(3);
  });

  it('states that the submission changed before it was cancelled', async () => {
    await open();
    await button('Cancel tracking').click();
    const restore = await answer('DELETE', 200, { status: 'finalized' });
    await dialog().getByRole('button', { name: 'Cancel tracking' }).click();
    await main().getByText('Unchanged: it has ended as finalized.').waitFor();
    await restore();
  });

  describe('changes of options', () => {
    it('are saved together, and shown in the history', async () => {
      const id = await open({ metadata: { order: 1 } });
      await button('Change options').click();
      await dialog()
        .getByLabel('Deadline')
        .fill(toUtcText(DEADLINE.replace('.678', '.000')));
      await dialog().getByLabel('Not-found grace').fill('600');
      await dialog().getByLabel('Stuck after').fill('90.5');
      const metadata = { 'a.b=c "d"': '<script>alert(1)</script>', order: null };
      await dialog().getByLabel('Metadata').fill(JSON.stringify(metadata));
      await dialog().getByLabel('Callback URL').fill('http://127.0.0.1:9009/hook');
      await dialog()
        .getByLabel('Data hash')
        .fill(`0x${'A'.repeat(64)}`);
      await save();
      await main().getByText('The options are changed.').waitFor();
      expect(await detailsNow(id)).toMatchObject({
        data_hash: `0x${'a'.repeat(64)}`,
        deadline_at: DEADLINE.replace('.678', '.000'),
        unknown_grace_s: 600,
        stuck_after_s: 90.5,
        metadata,
        callback_url: 'http://127.0.0.1:9009/hook',
      });
      await main().getByText('options changed').waitFor();
      await main().locator('.timeline dl').getByText('{"order":1} →').waitFor();
      expect(await page.locator('main script').count()).toBe(0);
    });

    it('send only what was edited, and remove what was emptied', async () => {
      const id = await open({
        metadata: { order: 1 },
        callback_url: 'http://127.0.0.1:9009/a',
        deadline: DEADLINE,
      });
      await button('Change options').click();
      await save();
      await dialog().getByText('Nothing is changed yet.').waitFor();
      await dialog().getByLabel('Metadata').fill('');
      await dialog().getByLabel('Callback URL').fill('');
      await save();
      await main().getByText('The options are changed.').waitFor();
      expect(await detailsNow(id)).toMatchObject({
        metadata: null,
        callback_url: null,
        deadline_at: DEADLINE,
      });
      expect((await detailsNow(id)).history).toHaveLength(2);
    });

    it.each([
      ['Deadline', '2020-01-02 03:04:05', 'the deadline is not in the future'],
      ['Stuck after', '', 'enter a value'],
      ['Metadata', '{"order":', 'not valid JSON'],
    ])('that are wrong are explained at the field: %s, %#', async (label, text, message) => {
      const id = await open();
      await button('Change options').click();
      const field = dialog().getByLabel(label);
      await field.fill(text);
      await save();
      await dialog().locator('.field p.wrong').getByText(message).waitFor();
      expect(await field.getAttribute('aria-invalid')).toBe('true');
      await expect
        .poll(() => field.evaluate((element) => element === document.activeElement))
        .toBe(true);
      expect(await field.inputValue(), 'nothing typed is lost').toBe(text);
      expect((await detailsNow(id)).history).toHaveLength(1);
      await dialog().getByRole('button', { name: 'Back' }).click();
    });

    it('of time limits are not offered once the submission has ended', async () => {
      const id = await open();
      await call(app.url, pathOf(id), { method: 'DELETE' });
      await fact('Status').getByText('cancelled').waitFor();
      await button('Change options').click();
      await dialog().getByText('its time limits cannot change').waitFor();
      expect(await dialog().getByLabel('Deadline').count()).toBe(0);
      await dialog().getByLabel('Metadata').fill('{"late":true}');
      await save();
      await main().getByText('The options are changed.').waitFor();
      expect(await detailsNow(id)).toMatchObject({ metadata: { late: true }, status: 'cancelled' });
    });
  });
});
