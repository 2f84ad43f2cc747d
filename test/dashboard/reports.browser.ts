import { describe, expect, it } from 'vitest';
import { everyRow, periodOf } from '../../src/dashboard/page/reports/reports-page.js';
import { goTo, SKIPPED, signIn, TEST_MS, useBrowser } from '../support/app/browser.ts';
import { API_KEY, useApp } from '../support/app/running-app.ts';
import { DAY_MS, fillReports, REPORT_SETTINGS } from '../support/ledger/report-ledger.ts';

const app = useApp({ fill: fillReports, ...REPORT_SETTINGS });
const browser = useBrowser();

describe.skipIf(SKIPPED)('the reports page', { timeout: TEST_MS }, () => {
  it('shows a week by hour, a day, and 90 days of an upstream, with exact totals and the objective, and the lag of each submission', async () => {
    const page = await browser.open(app.url);
    await signIn(page, API_KEY);
    await goTo(page, 'reports');
    await page.getByRole('heading', { name: 'Submissions of default' }).waitFor();
    await page.getByText('3 finalized, 1 ended otherwise.').waitFor();
    await page.getByText('67 % from the chain, the others estimated.').waitFor();
    await page.getByText('55,340,232,221,128,654,845').waitFor();
    await page.getByRole('heading', { name: 'Objective: 50 % known within 1 min' }).waitFor();
    expect(await page.locator('canvas').count()).toBe(3);
    const picture = () => page.evaluate<string>("document.querySelector('canvas').toDataURL()");
    const light = await picture();
    await page.emulateMedia({ colorScheme: 'dark' });
    await expect.poll(picture).not.toBe(light);
    await page.getByRole('link', { name: '90 days' }).click();
    await page.getByText('As a table').first().click();
    const rows = page.getByRole('region', { name: 'Ended' }).getByRole('row');
    await expect.poll(() => rows.count()).toBe(91);
    expect((await rows.allInnerTexts())[1]).toMatch(/\t2\t1$/);
    const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
    const iso = (ms: number) => new Date(ms).toISOString();
    const opened = async (ids: string, from: number, until: number, status?: string) => {
      await page.getByRole('heading', { name: 'Submissions', exact: true }).waitFor();
      expect(Object.fromEntries(new URLSearchParams(page.url().split('?')[1]))).toEqual({
        upstream: 'default',
        ended_since: iso(from),
        ended_until: iso(until),
        ...(status && { status }),
      });
      const listed = page.getByRole('main').getByRole('row').getByRole('link');
      await expect.poll(async () => (await listed.allInnerTexts()).toSorted().join('')).toBe(ids);
      await page.goBack();
      await page.getByRole('heading', { name: 'Submissions of default' }).waitFor();
    };
    await rows.getByRole('link').first().click();
    await opened('abc', today, today + DAY_MS);
    const figure = page.getByRole('figure').filter({ hasText: 'Time to finality' });
    const plot = figure.locator('.u-over');
    const box = await plot.boundingBox();
    await plot.click({ position: { x: (box?.width ?? 0) - 1, y: 20 } });
    await opened('ab', today, today + DAY_MS, 'finalized');
    await page.getByRole('region', { name: 'Totals' }).getByRole('link', { name: '3' }).click();
    await opened('aby', today - 89 * DAY_MS, today + DAY_MS, 'finalized');
    await page.getByRole('link', { name: 'Day', exact: true }).click();
    await page.getByText('2 finalized, 1 ended otherwise.').waitFor();
    await page.getByRole('link', { name: 'Earlier' }).click();
    await page.getByText('1 finalized, 0 ended otherwise.').waitFor();
    await page.getByRole('link', { name: 'other', exact: true }).click();
    await page.getByText('No data in this period.').first().waitFor();
    for (const [id, lag] of [
      ['a', /^1\.00 s, final .+ \(chain\)$/],
      ['y', 'about 1.00 s (estimate)'],
    ] as const) {
      await goTo(page, `submissions/${id}`);
      await page.locator('dt:text-is("Detection lag") + dd').getByText(lag).waitFor();
    }
  });
});

const NOW = Date.parse('2026-02-10T10:20:00Z');

describe('a period', () => {
  it('ends today or with the chosen day, and is by hour as long as hours are kept', () => {
    expect(periodOf('week', '', NOW)).toMatchObject({
      ...{ from: '2026-02-04', to: '2026-02-10', interval: 'hour' },
      ...{ earlier: '2026-02-03', later: undefined },
    });
    expect(periodOf('day', '2026-02-03', NOW)).toMatchObject({
      from: '2026-02-03',
      interval: 'hour',
      later: '2026-02-04',
    });
    expect(periodOf('day', '2026-02-02', NOW).interval).toBe('day');
    expect(periodOf('quarter', '2026-02-09', NOW)).toMatchObject({
      from: '2025-11-12',
      interval: 'day',
      later: '2026-02-10',
    });
  });

  it('is valid whatever the address bar contains', () => {
    expect(periodOf('nonsense', 'x', NOW)).toMatchObject({ from: '2026-02-04', to: '2026-02-10' });
    expect(periodOf('day', '2999-01-01', NOW).to).toBe('2026-02-10');
  });

  it('has a row for each hour up to now', () => {
    const row = { start: '2026-02-10T09:00:00.000Z' };
    const report = { from: '2026-02-10', to: '2026-02-10', interval: 'hour', rows: [row] };
    const { at, rows } = everyRow(report, Date.parse('2026-02-10T10:20:00.000Z'));
    expect(at).toHaveLength(11);
    expect(rows.indexOf(row)).toBe(9);
  });
});
