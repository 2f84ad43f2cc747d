import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { clearFilters, SKIPPED, setFilter, useBrowser } from '../support/app/browser.ts';
import { useNotifyingApp } from '../support/app/notifying-app.ts';
import { tempFolder } from '../support/temp-folder.ts';

const app = useNotifyingApp();
const browser = useBrowser();
const HOSTILE = '<img/src=x/onerror=alert(1)>';
const main = (page: Page) => page.getByRole('main');
const rows = (page: Page) => main(page).getByRole('row');

const open = (path: string) => browser.show(app.url, path);

describe.skipIf(SKIPPED)('the audit in the dashboard', () => {
  app.prepare(async () => {
    await app.cancelled([HOSTILE, ...Array.from({ length: 59 }, (_, index) => `s${index}`)]);
    await app.create({ url: 'https://hooks.example.com/' });
  });

  it('shows who changed what, newest first, page by page, and hostile text as text', async () => {
    const page = await open('audit');
    const first = rows(page).filter({ hasText: 'webhooks.create' });
    for (const text of ['DAWATCH_ADMIN_TOKEN', 'webhooks.create', 'done'])
      await first.getByText(text).waitFor();
    await page.getByRole('link', { name: 'Next page' }).click();
    await rows(page).filter({ hasText: HOSTILE }).getByText('submissions.cancel').waitFor();
    expect(await main(page).locator('img, script').count()).toBe(0);
    await page.getByRole('link', { name: 'Previous page' }).click();
    await first.getByText('webhooks.create').waitFor();
  });

  it('is filtered by caller, action, subject and time, and the filters are in the address', async () => {
    const page = await open('audit');
    const apply = (label: string, value: string) => setFilter(page, label, value);
    await rows(page).first().waitFor();
    await apply('Actions', 'submissions.cancel,webhooks.create');
    await apply('Caller', 'DAWATCH_ADMIN_TOKEN');
    await expect.poll(() => rows(page).count()).toBe(2);
    await apply('Caller', '');
    await apply('Subject', HOSTILE);
    await rows(page).filter({ hasText: HOSTILE }).waitFor();
    await expect.poll(() => rows(page).count()).toBe(2);
    await apply('Until', '2020-01-02 03:04');
    await page.getByText('Nothing matches the filters').waitFor();
    const query = new URLSearchParams(new URL(page.url()).hash.split('?')[1]);
    expect(Object.fromEntries(query)).toEqual({
      action: 'submissions.cancel,webhooks.create',
      subject: HOSTILE,
      until: '2020-01-02T03:04:00.000Z',
    });
    await apply('Actions', 'webhooks.gone');
    await page.getByRole('alert').getByText('must be one or more of').waitFor();
    await clearFilters(page);
    await rows(page).getByRole('link', { name: 'webhooks.create' }).click();
    await expect.poll(() => rows(page).count()).toBe(2);
  });

  it('is exported as NDJSON', async () => {
    const page = await open('audit');
    const downloading = page.waitForEvent('download');
    await main(page).getByRole('link', { name: 'Export' }).click();
    const download = await downloading;
    expect(download.suggestedFilename()).toBe('audit.ndjson');
    const file = join(tempFolder(), 'audit.ndjson');
    await download.saveAs(file);
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ seq: 1, action: 'submissions.cancel' });
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ action: 'audit.export' });
    await page.getByRole('button', { name: 'Refresh' }).click();
    await rows(page).getByText('audit.export').waitFor();
  });
});
