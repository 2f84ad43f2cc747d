import type { Page, Route } from 'playwright-core';
import { beforeEach, describe, expect, it } from 'vitest';
import { clearFilters, goTo, SKIPPED, setFilter, useBrowser } from '../../support/app/browser.ts';
import { call, pathOf, post } from '../../support/app/http-calls.ts';
import { API_KEY, useApp } from '../../support/app/running-app.ts';

const HOSTILE = '<img/src=x/onerror=alert(1)>';
const app = useApp();
const browser = useBrowser();
let page: Page;
const main = () => page.getByRole('main');
const form = () => page.getByRole('search');
const cancel = (id: string) => call(app.url, pathOf(id), { method: 'DELETE' });
const shown = () => main().locator('tbody').getByRole('link').allTextContents();
const expectShown = (ids: readonly string[]) => expect.poll(shown).toEqual(ids);
const query = () => page.evaluate<string>("decodeURIComponent(location.hash.split('?')[1] ?? '')");
const enter = (label: string, text: string) => setFilter(page, label, text);
describe.skipIf(SKIPPED)('the list of submissions in a browser', () => {
  app.prepare(async () => {
    await post(app.url, {
      submission_ids: ['a1', 'a2'],
      metadata: { of: 'all', order: 4711, shop: 'berlin' },
    });
    await post(app.url, { submission_id: 'b1', metadata: { of: 'all', note: HOSTILE } });
    await post(app.url, { submission_id: HOSTILE, metadata: { of: 'all' }, upstream: 'other' });
    for (const id of ['a1', HOSTILE]) await cancel(id);
  });
  beforeEach(async () => {
    page = await browser.openForAll(`${app.url}/#/submissions`, API_KEY);
  });

  it('is filtered by every condition; the URL shows the same elsewhere', async () => {
    // Other tests track further ones.
    await goTo(page, 'submissions?metadata.of=all');
    await expectShown([HOSTILE, 'b1', 'a2', 'a1']);
    expect(await main().locator('img, script').count()).toBe(0);
    const since = '2020-01-02 03:04:05';
    // Each shows others than the one before it.
    const steps: [label: string, value: string, query: string, ids: string[]][] = [
      ['Status', 'cancelled', 'status=cancelled', [HOSTILE, 'a1']],
      ['Tracked since', '2100-01-02', 'tracked_since=2100-01-02T00:00:00.000Z', []],
      ['Tracked since', since, 'tracked_since=2020-01-02T03:04:05.000Z', [HOSTILE, 'a1']],
      ['Metadata', 'order=4711', 'metadata.order=4711', ['a1']],
      ['Status', '', 'metadata.order=4711', ['a2', 'a1']],
      ['Metadata', 'shop=paris', 'metadata.shop=paris', []],
      ['Metadata', 'shop=berlin', 'metadata.shop=berlin', ['a2', 'a1']],
      ['ID prefix', 'a1', 'prefix=a1', ['a1']],
      ['Ended before', '2000-01-02 03:04', 'ended_until=2000-01-02T03:04:00.000Z', []],
      ['Ended before', '2100-01-02 03:04', 'ended_until=2100-01-02T03:04:00.000Z', ['a1']],
    ];
    for (const [label, value, part, ids] of steps) {
      await enter(label, value);
      await expectShown(ids);
      expect(await query()).toContain(part);
    }
    await main().getByText('1 submission', { exact: true }).waitFor();
    const before = await query();
    await page.reload();
    await expectShown(['a1']);
    expect(await query()).toBe(before);
    expect(await form().getByLabel('metadata.shop').inputValue()).toBe('berlin');
    await page.goBack();
    await expectShown([]);
    await page.goBack();
    await expectShown(['a1']);
    await clearFilters(page);
    await expect.poll(query).toBe('');
    await enter('Metadata', 'of=all');
    await enter('Upstream', 'other');
    await expectShown([HOSTILE]);
  });

  it('has columns and a count only for what nothing else shows', async () => {
    const headers = async () => (await main().getByRole('columnheader').allTextContents()).join();
    await goTo(page, 'submissions?metadata.of=all');
    await main().getByText('4 submissions', { exact: true }).waitFor();
    // The count may arrive before the rows.
    await expect.poll(headers).toBe('Submission,Status,Metadata,Tracked,Requests');
    await page.getByRole('link', { name: /^Open/ }).click();
    await main().getByText('4 submissions', { exact: true }).waitFor({ state: 'detached' });
    expect(await page.getByRole('link', { name: /^Open/ }).getAttribute('aria-current')).toBe(
      'true',
    );
  });

  it.each([
    ['status=done', 'must be one or more of tracking'],
    ['tracked_since=yesterday', 'tracked_since'],
    ['prefix=not+an+id', '1 to 128 printable ASCII'],
    ['state=failed', 'state'],
  ])('explains a wrong address, %s, without rows', async (wrong, message) => {
    await goTo(page, `submissions?${wrong}`);
    await main().getByRole('alert').getByText(message).waitFor();
    expect(await main().getByRole('table').count()).toBe(0);
  });

  it('explains a condition on metadata without a value', async () => {
    await goTo(page, 'submissions');
    await enter('Metadata', 'berlin');
    await main().getByRole('alert').getByText('must be written as metadata.order=4711').waitFor();
    await enter('Metadata', 'shop=berlin');
    await expectShown(['a2', 'a1']);
    expect(await query()).toBe('metadata.shop=berlin');
  });

  it('suggests commands that are safe to copy, whatever the address contains', async () => {
    await goTo(page, `submissions/${encodeURIComponent("x';id;'")}`);
    await main().getByText(`npx dawatch track 'x'\\'';id;'\\'''`, { exact: true }).waitFor();
    await main().getByText(`-d '{"submission_id":"x'\\'';id;'\\''"}'`).waitFor();
  });

  it('continues a search that a response did not complete, and a count on demand', async () => {
    const part = (route: Route) => {
      const { searchParams } = new URL(route.request().url());
      const from = Number(searchParams.get('cursor') ?? 0);
      const isCount = route.request().url().includes('submission_count');
      const next_cursor = from < 2 ? String(from + 1) : null;
      return route.fulfill({
        json: isCount ? { count: 2, next_cursor } : { submissions: [], next_cursor },
      });
    };
    await page.route(/v1\/submission(s|_count)\?/, part);
    await goTo(page, 'submissions?metadata.rare=1');
    await main().getByText('No match so far.').waitFor();
    await main().getByText('At least 2 submissions').waitFor();
    await main().getByRole('button', { name: 'Count all' }).click();
    await main().getByText('6 submissions', { exact: true }).waitFor();
    // Until a page arrives, the link leads from the previous one.
    for (const cursor of [1, 2])
      await page
        .getByRole('link', { name: 'Next page' })
        .and(page.locator(`[href$="cursor=${cursor}"]`))
        .click();
    await main().getByText('No more submissions').waitFor();
    expect(await query()).toBe('metadata.rare=1&cursor=2');
    await page.unroute(/v1\/submission(s|_count)\?/, part);
  });
});
