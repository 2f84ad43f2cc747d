import { randomUUID } from 'node:crypto';
import type { Page, Route } from 'playwright-core';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { goTo, SKIPPED, signIn, TEST_MS, useBrowser } from '../../support/app/browser.ts';
import { call, pathOf, post } from '../../support/app/http-calls.ts';
import { API_KEY, useApp } from '../../support/app/running-app.ts';

const HOSTILE = '<img/src=x/onerror=alert(1)>';
const ODD_NAME = 'a.b=c "d"';
const app = useApp();
const browser = useBrowser();
let page: Page;
let dialogs = 0;
const main = () => page.getByRole('main');
const form = () => page.getByRole('search');
const cancel = (id: string) => call(app.url, pathOf(id), { method: 'DELETE' });
const shown = () => main().locator('tbody').getByRole('link').allTextContents();
const expectShown = (ids: readonly string[]) =>
  expect.poll(shown, { timeout: 10_000 }).toEqual(ids);
const query = () => page.evaluate<string>("decodeURIComponent(location.hash.split('?')[1] ?? '')");
/**
 * Enters a text as a user does, and leaves the field. In a field with a time, Tab leads to its next
 * part.
 */
async function enter(label: string, text: string): Promise<void> {
  await form().getByLabel(label, { exact: true }).fill(text);
  await page.keyboard.press(
    label.startsWith('Ended') || label.startsWith('Tracked') ? 'Enter' : 'Tab',
  );
}
/** The browser has the time zone of the tests. */
const instant = (local: string) => new Date(local).toISOString();
const select = (id: string) =>
  page.getByRole('checkbox', { name: `Select ${id}`, exact: true }).check();
const resultOf = (id: string) => main().getByRole('listitem').filter({ hasText: id });

describe.skipIf(SKIPPED)('the list of submissions in a browser', { timeout: TEST_MS }, () => {
  beforeAll(async () => {
    await post(app.url, {
      submission_ids: ['a1', 'a2'],
      metadata: { order: 4711, shop: 'berlin' },
    });
    await post(app.url, { submission_id: 'b1', metadata: { [ODD_NAME]: 'x"y=z&', note: HOSTILE } });
    await post(app.url, { submission_id: HOSTILE, upstream: 'other', metadata: { '': 1 } });
    for (const id of ['a1', HOSTILE]) await cancel(id);
  });
  beforeEach(async () => {
    page = await browser.openForAll(`${app.url}/#/submissions`, async (opened) => {
      opened.on('dialog', (dialog) => {
        dialogs += 1;
        void dialog.dismiss();
      });
      await signIn(opened, API_KEY);
    });
  }, TEST_MS);

  const filters: [name: string, set: () => Promise<void>, query: string, ids: string[]][] = [
    [
      'several statuses',
      async () => {
        await form().getByLabel('cancelled').check();
        await form().getByLabel('expired').check();
      },
      'status=expired,cancelled',
      [HOSTILE, 'a1'],
    ],
    ['an upstream', () => enter('Upstream', 'other'), 'upstream=other', [HOSTILE]],
    ['a prefix', () => enter('ID prefix', 'a'), 'prefix=a', ['a1', 'a2']],
    [
      'a text in metadata',
      () => enter('Text in ids and metadata', 'BERL'),
      'search=BERL',
      ['a2', 'a1'],
    ],
    [
      'a text that is markup',
      () => enter('Text in ids and metadata', '<img'),
      'search=<img',
      [HOSTILE, 'b1'],
    ],
    [
      'several values of metadata',
      async () => {
        await enter('Name 1', 'order');
        await enter('Value 1', '4711');
        await form().getByRole('button', { name: 'Add a value' }).click();
        await enter('Name 2', 'shop');
        await enter('Value 2', 'berlin');
      },
      'metadata.order=4711&metadata.shop=berlin',
      ['a2', 'a1'],
    ],
    [
      'metadata whose name has a dot, = and quotes',
      async () => {
        await enter('Name 1', ODD_NAME);
        await enter('Value 1', 'x"y=z&');
      },
      `metadata.${ODD_NAME.replace(' ', '+')}=x"y=z&`,
      ['b1'],
    ],
    [
      'times of tracking',
      async () => {
        await enter('Tracked since', '2020-01-02T03:04:05');
        await enter('Tracked before', '2100-01-02T03:04:00');
      },
      `tracked_since=${instant('2020-01-02T03:04:05')}&tracked_until=${instant('2100-01-02T03:04:00')}`,
      [HOSTILE, 'b1', 'a2', 'a1'],
    ],
    [
      'times of the end',
      async () => {
        await enter('Ended since', '2020-01-02T03:04:05');
        await enter('Ended before', '2100-01-02T03:04:05');
      },
      `ended_since=${instant('2020-01-02T03:04:05')}&ended_until=${instant('2100-01-02T03:04:05')}`,
      [HOSTILE, 'a1'],
    ],
    [
      'a combination',
      async () => {
        await form().getByLabel('cancelled').check();
        await enter('ID prefix', 'a');
        await enter('Text in ids and metadata', '4711');
      },
      'status=cancelled&search=4711&prefix=a',
      ['a1'],
    ],
  ];
  it.each(filters)(
    'filters by %s; the URL shows the same elsewhere',
    async (_, set, expected, ids) => {
      await goTo(page, 'submissions');
      await expectShown([HOSTILE, 'b1', 'a2', 'a1']);
      await set();
      await expectShown(ids);
      await expect.poll(query).toBe(expected);
      await main()
        .getByText(ids.length === 1 ? '1 submission' : `${ids.length} submissions`, { exact: true })
        .waitFor();
      const controls = () =>
        page.evaluate<string>(
          "new URLSearchParams(new FormData(document.querySelector('form'))).toString()",
        );
      const before = await controls();
      await page.reload();
      await expectShown(ids);
      expect(await controls()).toBe(before);
      expect([dialogs, await page.locator('main img, main script').count()]).toEqual([0, 0]);

      await page.getByRole('link', { name: 'Clear all filters' }).click();
      await expectShown([HOSTILE, 'b1', 'a2', 'a1']);
      expect(await query()).toBe('');
    },
  );

  it('keeps filters apart in the history of the browser, removes them one by one, and keeps the fraction of a time', async () => {
    await goTo(page, 'submissions?tracked_since=2020-01-02T03:04:05.678Z&metadata.shop=berlin');
    await expectShown(['a2', 'a1']);
    await form().getByLabel('cancelled').check();
    await expectShown(['a1']);
    expect(await query()).toBe(
      'status=cancelled&tracked_since=2020-01-02T03:04:05.678Z&metadata.shop=berlin',
    );
    await form().getByRole('button', { name: 'Remove value 1' }).click();
    await expectShown([HOSTILE, 'a1']);
    await page.goBack();
    await expectShown(['a1']);
    expect(await form().getByLabel('Value 1', { exact: true }).inputValue()).toBe('berlin');
    await page.goBack();
    await expectShown(['a2', 'a1']);
    expect(await form().getByLabel('cancelled').isChecked()).toBe(false);
  });

  it.each([
    ['status=done', 'must be one or more of tracking'],
    ['upstream=nowhere', 'no upstream is named "nowhere"'],
    ['tracked_since=yesterday', 'tracked_since'],
    [
      'tracked_since=2026-01-02T00:00:00Z&tracked_until=2026-01-01T00:00:00Z',
      'must be after the start',
    ],
    ['metadata.a=1&metadata.a=2', 'must be given once'],
    [`search=${'x'.repeat(129)}`, 'search'],
    ['prefix=not+an+id', '1 to 128 printable ASCII'],
    ['cursor=x', 'not a cursor'],
    ['state=failed&metadata=1', 'There is no filter named state, metadata'],
  ])('explains a wrong address, %#', async (wrong, message) => {
    await goTo(page, `submissions?${wrong}`);
    await main().getByRole('alert').getByText(message).waitFor();
    expect(await main().getByRole('table').count()).toBe(0);
  });

  it('shows an error at its field, and drops a wrong time with the next change', async () => {
    await goTo(page, 'submissions?tracked_since=yesterday');
    const field = form().getByLabel('Tracked since');
    await expect.poll(() => field.getAttribute('aria-invalid')).toBe('true');
    await enter('ID prefix', 'b');
    await expectShown(['b1']);
    expect(await query()).toBe('prefix=b');
  });

  it('applies a time that is typed digit by digit once it is complete', async () => {
    await goTo(page, `submissions?tracked_since=${instant('2020-01-02T03:04:05')}`);
    const field = form().getByLabel('Tracked since');
    await expect.poll(() => field.inputValue()).toBe('2020-01-02T03:04:05');
    await field.focus();
    // The fields of month, day and year.
    await page.keyboard.type('11122019', { delay: 30 });
    await expect.poll(query).toBe(`tracked_since=${instant('2019-11-12T03:04:05')}`);
    expect(await field.inputValue()).toBe('2019-11-12T03:04:05');
  });

  it('suggests commands that are safe to copy, whatever the address contains', async () => {
    await goTo(page, `submissions/${encodeURIComponent("x';id;'")}`);
    await main().getByText(`npx dawatch track 'x'\\'';id;'\\'''`, { exact: true }).waitFor();
    await main().getByText(`-d '{"submission_id":"x'\\'';id;'\\''"}'`).waitFor();
  });

  it('keeps the focus at its submission when others appear', async () => {
    const prefix = `focus-${randomUUID()}-`;
    await post(app.url, { submission_id: `${prefix}b` });
    await goTo(page, `submissions?prefix=${prefix}`);
    await page.getByRole('link', { name: `${prefix}b` }).focus();
    await post(app.url, { submission_id: `${prefix}a` });
    await page.keyboard.press('r');
    await expectShown([`${prefix}a`, `${prefix}b`]);
    expect(await page.evaluate('document.activeElement.innerText')).toBe(`${prefix}b`);
  });

  it('counts and pages through the matches', async () => {
    const ids = Array.from({ length: 60 }, (_, index) => `many-${index}`);
    await post(app.url, { submission_ids: ids, tracked_at: '2026-01-02T03:04:05Z' });
    await goTo(page, 'submissions?search=many-&tracked_until=2026-01-03T00:00:00Z');
    await main().getByText('60 submissions', { exact: true }).waitFor();
    await expectShown(ids.slice(10).toReversed());
    await page.getByRole('link', { name: 'Next page' }).click();
    await expectShown(ids.slice(0, 10).toReversed());
    await page.goBack();
    await expectShown(ids.slice(10).toReversed());
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
      expect(await page.getByRole('button', { name: 'Retrack selected' }).isDisabled()).toBe(true);
      await page.getByRole('button', { name: 'Cancel selected' }).click();
      const dialog = page.getByRole('dialog', { name: 'Cancel 3 submissions?' });
      await dialog.getByRole('button', { name: 'Back' }).click();
      await dialog.waitFor({ state: 'detached' });
      expect(await page.getByRole('row').filter({ hasText: 'cancelled' }).count()).toBe(0);

      await page.getByRole('button', { name: 'Cancel selected' }).click();
      await dialog.getByRole('button', { name: 'Cancel selected' }).click();
      for (const id of [one, two, three]) await resultOf(id).getByText('Cancelled.').waitFor();
      await expect
        .poll(() => page.getByRole('row').filter({ hasText: 'cancelled' }).count())
        .toBe(3);
      expect(await page.evaluate('document.activeElement.innerText')).toBe('Results');

      await select(one);
      await select(two);
      await page.getByRole('button', { name: 'Retrack selected' }).click();
      // Another client is faster.
      await post(app.url, { submission_id: two, upstream: 'other', retrack: true });
      await page.getByRole('dialog').getByRole('button', { name: 'Retrack selected' }).click();
      await resultOf(one).getByText('Tracked again.').waitFor();
      await resultOf(two).getByText('Unchanged: it is tracking.').waitFor();
      await page.getByRole('button', { name: 'Close the results' }).click();
      expect(await main().getByText('Results').count()).toBe(0);
    });

    it('that failed stay selected; nothing more is sent once the server limits requests', async () => {
      await post(app.url, { submission_ids: ['t1', 't2', 't3', 't4', 't5'] });
      const failures: Record<string, [status: number, detail: string]> = {
        t2: [500, 'the log has the reason'],
        t3: [409, 'conflict with another change'],
        t4: [429, 'too many requests; try again in 7 s'],
      };
      const sent: string[] = [];
      const fail = (route: Route) => {
        const id = route.request().url().split('/').at(-1) ?? '';
        if (route.request().method() === 'DELETE') sent.push(id);
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
      await resultOf('t5').getByText('Not sent.').waitFor();
      expect(sent).toEqual(['t1', 't2', 't3', 't4']);
      await main().getByText('4 selected').waitFor();
      await page.unroute('**/v1/submissions/t*', fail);
    });

    it('are those of all pages, with one button or page by page', async () => {
      const prefix = `pages-${randomUUID()}-`;
      const ids = Array.from({ length: 60 }, (_, index) => `${prefix}${100 + index}`);
      await post(app.url, { submission_ids: ids, upstream: 'other' });
      await goTo(page, `submissions?prefix=${prefix}`);
      await expectShown(ids.slice(0, 50));
      const all = page.getByRole('checkbox', { name: 'Select all on this page' });
      await all.check();
      await page.getByRole('link', { name: 'Next page' }).click();
      await expectShown(ids.slice(50));
      await main().getByText('50 selected').waitFor();
      expect(await all.isChecked()).toBe(false);
      await select(`${prefix}150`);
      await main().getByText('51 selected').waitFor();
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
      await page.getByRole('button', { name: 'Cancel selected' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Cancel selected' }).click();
      await expect
        .poll(() => main().getByRole('listitem').filter({ hasText: 'Cancelled.' }).count())
        .toBe(40);
    });

    it('can be selected on a phone', async () => {
      await post(app.url, { submission_ids: ['v1', 'v2'] });
      await goTo(page, 'submissions?prefix=v');
      await expectShown(['v1', 'v2']);
      await page.setViewportSize({ width: 390, height: 844 });
      await page.getByText('Select all on this page').click();
      await main().getByText('2 selected').waitFor();
      expect(
        await main().locator('thead :is(input, button, a)').count(),
        'in the hidden head',
      ).toBe(0);
      await page.setViewportSize({ width: 1_280, height: 720 });
    });

    it('stay behind if the session ends: signing in again leads back to the same list', async () => {
      await post(app.url, { submission_ids: ['u1', 'u2'] });
      await goTo(page, 'submissions?prefix=u');
      await select('u1');
      await page.getByRole('button', { name: 'Cancel selected' }).click();
      const refuse = (route: Route) =>
        route.fulfill({ status: 401, json: { detail: 'a valid credential is required' } });
      await page.route('**/v1/submissions/u1', refuse);
      await page.getByRole('dialog').getByRole('button', { name: 'Cancel selected' }).click();
      await page.getByText('The session has ended').waitFor();
      await page.unroute('**/v1/submissions/u1', refuse);
      await signIn(page, API_KEY);
      await expectShown(['u1', 'u2']);
      await resultOf('u1').getByText('Refused because you were signed out').waitFor();
      await main().getByText('1 selected').waitFor();
      expect(await page.getByRole('row').filter({ hasText: 'tracking' }).count()).toBe(2);
    });
  });
});
