import { randomUUID } from 'node:crypto';
import type { Page, Route } from 'playwright-core';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  goTo,
  SKIPPED,
  setFilter,
  signIn,
  TEST_MS,
  useBrowser,
} from '../../support/app/browser.ts';
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
const expectShown = (ids: readonly string[]) =>
  expect.poll(shown, { timeout: 10_000 }).toEqual(ids);
const query = () => page.evaluate<string>("decodeURIComponent(location.hash.split('?')[1] ?? '')");
const enter = (label: string, text: string) => setFilter(page, label, text);
async function search(text: string): Promise<void> {
  await form().getByRole('searchbox').fill(text);
  await page.keyboard.press('Enter');
}
/** Opens the filter of statuses, and checks one. */
async function checkStatus(status: string): Promise<void> {
  await form().getByRole('button', { name: 'Filter', exact: true }).click();
  await form().getByRole('button', { name: 'Status', exact: true }).click();
  await form().getByRole('checkbox', { name: status }).check();
  await page.keyboard.press('Escape');
}
const select = (id: string) =>
  page.getByRole('checkbox', { name: `Select ${id}`, exact: true }).check();
const resultOf = (id: string) => main().getByRole('listitem').filter({ hasText: id });

describe.skipIf(SKIPPED)('the list of submissions in a browser', { timeout: TEST_MS }, () => {
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
    page = await browser.openForAll(`${app.url}/#/submissions`, (opened) =>
      signIn(opened, API_KEY),
    );
  }, TEST_MS);

  it('is filtered by every condition; the URL shows the same elsewhere', async () => {
    // Other tests track further ones.
    await goTo(page, 'submissions?metadata.of=all');
    await expectShown([HOSTILE, 'b1', 'a2', 'a1']);
    expect(await main().locator('img, script').count()).toBe(0);
    const steps: [set: () => Promise<void>, query: string, ids: string[]][] = [
      [() => checkStatus('cancelled'), 'status=cancelled', [HOSTILE, 'a1']],
      [() => checkStatus('tracking'), 'status=cancelled,tracking', [HOSTILE, 'b1', 'a2', 'a1']],
      [
        () => enter('Tracked since', '2020-01-02 03:04:05'),
        'tracked_since=2020-01-02T03:04:05.000Z',
        [HOSTILE, 'b1', 'a2', 'a1'],
      ],
      [() => search('order=4711'), 'metadata.order=4711', ['a2', 'a1']],
      [() => search('shop=berlin'), 'metadata.shop=berlin', ['a2', 'a1']],
      [() => search('BERL'), 'search=BERL', ['a2', 'a1']],
      [() => search('prefix:a1'), 'prefix=a1', ['a1']],
      [
        () => enter('Ended before', '2100-01-02 03:04'),
        'ended_until=2100-01-02T03:04:00.000Z',
        ['a1'],
      ],
    ];
    for (const [set, part, ids] of steps) {
      await set();
      await expectShown(ids);
      await expect.poll(query).toContain(part);
    }
    expect(await form().getByRole('searchbox').inputValue()).toBe('');
    await main().getByText('1 submission', { exact: true }).waitFor();
    const before = await query();
    await page.reload();
    await expectShown(['a1']);
    expect(await query()).toBe(before);
    await form().getByRole('button', { name: 'shop: berlin' }).waitFor();
    await page.goBack();
    await page.goBack();
    await expectShown(['a2', 'a1']);
    await page.getByRole('link', { name: 'Clear filters' }).click();
    await expect.poll(query).toBe('');
    await search('of=all');
    await search('upstream:other');
    await expectShown([HOSTILE]);
  });

  it('finds an id by its beginning, and offers to search it as a text', async () => {
    await goTo(page, 'submissions');
    // Other tests list the ids that begin with "a".
    const id = `f${randomUUID().slice(1)}`;
    const note = `beef${id.slice(1, 5)}`;
    await post(app.url, { submission_id: id, metadata: { note } });
    await search(id.slice(0, 8));
    await expectShown([id]);
    expect(await query()).toBe(`prefix=${id.slice(0, 8)}`);
    await page.getByRole('link', { name: 'Remove the filter ID prefix' }).click();
    await search(note);
    await page.getByRole('link', { name: 'Search it as a text' }).click();
    await expectShown([id]);
    await cancel(id);
  });

  it('has presets with counts', async () => {
    await goTo(page, 'submissions');
    await form()
      .getByRole('link', { name: /^Open \d+$/ })
      .click();
    await expect.poll(query).toBe('status=tracking,pending,failing');
    await form()
      .getByRole('link', { name: /^Late \d+$/ })
      .waitFor();
    await form()
      .getByRole('link', { name: /^Last hour \d+$/ })
      .click();
    await expect.poll(query).toMatch(/^tracked_since=[^&]*$/);
    await form()
      .getByRole('link', { name: /^All \d+$/ })
      .click();
    await expect.poll(query).toBe('');
  });

  it('moves from row to row with the arrow keys, opens one with Enter, and shows one beside the list after a click', async () => {
    await goTo(page, 'submissions?prefix=a');
    await expectShown(['a1', 'a2']);
    const panel = page.getByRole('complementary', { name: 'Submission' });
    await page.getByRole('row').filter({ hasText: 'a2' }).getByText('tracking').click();
    await panel.getByRole('heading', { name: 'a2' }).waitFor();
    const move = async (key: string, id: string) => {
      await page.keyboard.press(key);
      await page.locator('a:focus').getByText(id, { exact: true }).waitFor();
    };
    await move('ArrowUp', 'a1');
    await page.keyboard.press('Escape');
    await expect.poll(() => panel.count()).toBe(0);
    await page.getByRole('heading', { level: 1 }).click();
    await move('ArrowDown', 'a1');
    await move('ArrowDown', 'a2');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'a2' }).waitFor();
  });

  it('keeps filters under a name in the browser', async () => {
    await goTo(page, 'submissions?prefix=a');
    await form().getByRole('button', { name: 'Views' }).click();
    await form().getByLabel('Save the current filters as').fill('of the shop');
    await page.keyboard.press('Enter');
    await goTo(page, 'submissions');
    await form().getByRole('button', { name: 'Views' }).click();
    // On a phone the panel is within the window.
    const size = page.viewportSize() ?? { width: 1_280, height: 720 };
    await page.setViewportSize({ width: 390, height: 844 });
    const box = await form().getByRole('group', { name: 'Saved views' }).boundingBox();
    expect(box?.x).toBeGreaterThanOrEqual(0);
    expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(390);
    await page.setViewportSize(size);
    await form().getByRole('link', { name: 'of the shop' }).click();
    await expect.poll(query).toBe('prefix=a');
  });

  it('shows the chosen columns, and keeps the choice', async () => {
    await goTo(page, 'submissions');
    const titles = () => main().getByRole('columnheader').allTextContents();
    await expect.poll(titles).toContain('Requests');
    await form().getByRole('button', { name: 'Columns' }).click();
    await form().getByRole('checkbox', { name: 'Requests' }).uncheck();
    await page.reload();
    await expect.poll(titles).toContain('Metadata');
    expect(await titles()).not.toContain('Requests');
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
    await form().getByRole('link', { name: 'Remove the filter Metadata' }).click();
    await search('shop=berlin');
    await expectShown(['a2', 'a1']);
    expect(await query()).toBe('metadata.shop=berlin');
  });

  it('suggests commands that are safe to copy, whatever the address contains', async () => {
    await goTo(page, `submissions/${encodeURIComponent("x';id;'")}`);
    await main().getByText(`npx dawatch track 'x'\\'';id;'\\'''`, { exact: true }).waitFor();
    await main().getByText(`-d '{"submission_id":"x'\\'';id;'\\''"}'`).waitFor();
  });

  it('continues a search that a response did not complete, and a count on demand', async () => {
    const examined_to = new Date(Date.now() - 7_200_000).toISOString();
    const part = (route: Route) => {
      const { searchParams } = new URL(route.request().url());
      const from = Number(searchParams.get('cursor') ?? 0);
      const isCount = route.request().url().includes('submission_count');
      const next_cursor = from < 22 ? String(from + 1) : null;
      return route.fulfill({
        json: isCount ? { count: 2, next_cursor } : { submissions: [], next_cursor, examined_to },
      });
    };
    await page.route(/v1\/submission(s|_count)\?/, part);
    await goTo(page, 'submissions?search=rare');
    await main().getByText('Searched back to 2 h ago: 0 found so far.').waitFor();
    await main().getByText('At least 2 submissions').waitFor();
    await main().getByRole('button', { name: 'Count all' }).click();
    await main().getByText('46 submissions', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Continue the search' }).click();
    await main().getByText('No more submissions').waitFor();
    expect(await query()).toBe('search=rare&cursor=20');
    await page.unroute(/v1\/submission(s|_count)\?/, part);
  });

  describe('selected rows', () => {
    it('are cancelled and tracked again after confirmation, with a result for each', async () => {
      const prefix = `s-${randomUUID()}-`;
      const [one, two, three] = ['1', '2', '3'].map((name) => prefix + name) as [
        string,
        string,
        string,
      ];
      await post(app.url, { submission_ids: [one, two, three], upstream: 'other' });
      await goTo(page, `submissions?prefix=${prefix}`);
      await select(one);
      await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
      await main().getByText('3 selected').waitFor();
      const retrack = page.getByRole('button', { name: 'Retrack selected' });
      expect(await retrack.getAttribute('aria-disabled')).toBe('true');
      await page.getByRole('button', { name: 'Cancel selected' }).click();
      const dialog = page.getByRole('dialog', { name: 'Cancel 3 submissions?' });
      await dialog.getByRole('button', { name: 'Cancel selected' }).click();
      for (const id of [one, two, three]) await resultOf(id).getByText('Cancelled.').waitFor();
      await expect
        .poll(() => page.getByRole('row').filter({ hasText: 'cancelled' }).count())
        .toBe(3);

      await select(one);
      await select(two);
      await retrack.click();
      // Another client is faster.
      await post(app.url, { submission_id: two, upstream: 'other', retrack: true });
      await page.getByRole('dialog').getByRole('button', { name: 'Retrack selected' }).click();
      await resultOf(one).getByText('Tracked again.').waitFor();
      await resultOf(two).getByText('Unchanged: it is tracking.').waitFor();
      await page.getByRole('button', { name: 'Close the results' }).click();
      expect(await main().getByText('Results').count()).toBe(0);
    });

    it('that failed stay selected; nothing more is sent once the server limits requests', async () => {
      await post(app.url, { submission_ids: ['t1', 't2', 't3', 't4'] });
      const failures: Record<string, [status: number, detail: string]> = {
        t2: [500, 'the log has the reason'],
        t3: [429, 'too many requests; try again in 7 s'],
      };
      const fail = (route: Route) => {
        const id = route.request().url().split('/').at(-1) ?? '';
        const [status, detail] = failures[id] ?? [];
        return status === undefined
          ? route.continue()
          : route.fulfill({ status, json: { detail } });
      };
      await page.route('**/v1/submissions/t*', fail);
      await goTo(page, 'submissions?prefix=t');
      await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
      await page.getByRole('button', { name: 'Cancel selected' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Cancel selected' }).click();
      await resultOf('t1').getByText('Cancelled.').waitFor();
      for (const [id, [, detail]] of Object.entries(failures))
        await resultOf(id).getByText(detail).waitFor();
      await resultOf('t4').getByText('Not sent.').waitFor();
      await main().getByText('3 selected').waitFor();
      await page.unroute('**/v1/submissions/t*', fail);
    });

    it('are those of all pages with one button, and a run can be stopped', async () => {
      const prefix = `pages-${randomUUID()}-`;
      const ids = Array.from({ length: 60 }, (_, index) => `${prefix}${100 + index}`);
      await post(app.url, { submission_ids: ids, upstream: 'other' });
      await goTo(page, `submissions?prefix=${prefix}`);
      await expectShown(ids.slice(0, 50));
      await page.getByRole('link', { name: 'Next page' }).click();
      await expectShown(ids.slice(50));
      await page.getByRole('button', { name: 'Select all that match' }).click();
      await main().getByText('60 selected', { exact: true }).waitFor();
      await page.getByRole('button', { name: 'Cancel selected' }).click();
      const dialog = page.getByRole('dialog', { name: 'Cancel 60 submissions?' });
      let sent = 0;
      const stop = async (route: Route) => {
        sent += 1;
        // All others wait in line.
        if (sent === 20) await dialog.getByRole('button', { name: 'Stop' }).click();
        await route.continue();
      };
      await page.route(`**/v1/submissions/${prefix}*`, stop);
      await dialog.getByRole('button', { name: 'Cancel selected' }).click();
      await main().getByText('20 submissions succeeded').waitFor();
      await main().getByText('40 selected', { exact: true }).waitFor();
      expect(await resultOf(`${prefix}159`).textContent()).toContain('Not sent.');
      await page.unroute(`**/v1/submissions/${prefix}*`, stop);
    });
  });
});
