import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  clickEach,
  expectCopied,
  goTo,
  SKIPPED,
  setFilter,
  useBrowser,
} from '../support/app/browser.ts';
import { post } from '../support/app/http-calls.ts';
import { useNotifyingApp } from '../support/app/notifying-app.ts';
import { openReceiver } from '../support/servers/receiver.ts';

const app = useNotifyingApp();
const browser = useBrowser();
const open = (path: string) => browser.show(app.url, path);
const main = (page: Page) => page.getByRole('main');
const rowOf = (page: Page, text: string) => main(page).getByRole('row').filter({ hasText: text });
/** Cancels new submissions, whose entries in the audit are new rows. */
const cancel = async (count: number) => {
  const ids = Array.from({ length: count }, () => randomUUID());
  await app.cancelled(ids);
  return ids;
};
/** Without the pointer. */
const refresh = (page: Page) =>
  page.getByRole('button', { name: 'Refresh' }).evaluateAll(clickEach);

describe.skipIf(SKIPPED)('a list in the dashboard', () => {
  app.prepare(async () => {
    // The banner of an alert would move the rows away from the pointer.
    const until = new Date(Date.now() + 86_400_000).toISOString();
    expect((await app.admin('POST', '/v1/mutes', { until })).status).toBe(201);
  });

  it('holds new rows back while a person points at it, and shows them on demand', async () => {
    const [first = ''] = await cancel(1);
    const page = await open('audit?action=submissions.cancel');
    await rowOf(page, first).hover();
    const [second = '', third = ''] = await cancel(2);
    await refresh(page);
    await main(page).getByRole('button', { name: '2 new' }).click();
    for (const id of [first, second, third]) await rowOf(page, id).waitFor();
    await main(page).getByRole('button', { name: 'new' }).waitFor({ state: 'detached' });
    await main(page).getByRole('heading', { level: 1 }).hover();
    const [fourth = ''] = await cancel(1);
    await refresh(page);
    await rowOf(page, fourth).waitFor();
  });

  it('that nothing matches says so, and shows all on demand', async () => {
    const [id = ''] = await cancel(1);
    const page = await open('audit?subject=nothing');
    await main(page).getByText('Nothing matches the filters.').waitFor();
    await main(page).getByRole('link', { name: 'Show all entries' }).click();
    await rowOf(page, id).waitFor();
  });

  it('replaces a search by the next one', async () => {
    await app.cancelled(['one'], { metadata: { shop: 'berlin', order: 1 } });
    await app.cancelled(['two'], { metadata: { shop: 'paris', order: 2 } });
    const page = await open('submissions');
    await rowOf(page, 'two').waitFor();
    await setFilter(page, 'Metadata', 'shop=berlin');
    await rowOf(page, 'two').waitFor({ state: 'detached' });
    await rowOf(page, 'one').waitFor();
    await setFilter(page, 'Metadata', 'order=2');
    await rowOf(page, 'two').waitFor();
    await goTo(page, 'submissions?prefix=one');
    await rowOf(page, 'one').waitFor();
    await main(page).getByRole('heading', { level: 1 }).click();
    await page.keyboard.press('/');
    await page.keyboard.type('two');
    await page.keyboard.press('Enter');
    await rowOf(page, 'two').waitFor();
  });

  it('of deliveries, alerts or the audit has an address for each entry', async () => {
    const receiver = await openReceiver();
    const of = randomUUID();
    await app.create({ url: receiver.url, metadata: { of } });
    const id = randomUUID();
    await app.cancelled([id], { metadata: { of } });
    // The upstream of the app does not respond.
    await post(app.url, { submission_id: randomUUID() });
    const heading = (page: Page) => main(page).getByRole('heading', { level: 1 });

    let page = await open(`deliveries?submission_id=${id}`);
    await main(page)
      .getByRole('link', { name: /^Delivery/ })
      .click();
    await heading(page)
      .getByText(/^Delivery \d/)
      .waitFor();
    await page.reload();
    await main(page)
      .getByText(/HTTP 200 ·/)
      .waitFor();

    page = await open('alerts');
    await main(page)
      .getByRole('link', { name: /^began/ })
      .click();
    await heading(page).getByText('The upstream default is not responding').waitFor();
    await page.reload();
    await main(page).getByText('firing', { exact: true }).waitFor();

    page = await open(`audit?subject=${id}`);
    await rowOf(page, id)
      .getByRole('link', { name: /^Entry/ })
      .click();
    await page.waitForURL(/since=/);
    await page.reload();
    await rowOf(page, 'submissions.cancel').waitFor();
    expect(await rowOf(page, 'submissions.cancel').count()).toBe(1);
  });

  it('shortens ids in the middle where there is not enough space, and copies all of them', async () => {
    const id = randomUUID();
    await app.cancelled([id]);
    const webhook = await app.create({ url: 'https://hooks.example.com/' });
    for (const [path, name, copied] of [
      [`submissions?prefix=${id}`, `the id ${id}`, id],
      [`audit?subject=${id}`, `the subject ${id}`, id],
      ['webhooks', `the id ${webhook.id}`, webhook.id],
    ] as const) {
      const page = await open(path);
      await rowOf(page, copied).hover();
      await main(page)
        .getByRole('button', { name: `Copy ${name}` })
        .click();
      await expectCopied(page, copied);
      const widths = await rowOf(page, copied).evaluate((row) =>
        [':has(> .id)', '.id', '.start']
          .map((one) => row.querySelector(one))
          .flatMap((one) => [one?.clientWidth, one?.scrollWidth]),
      );
      const [cell = 0, content = 0, link = 0, linkText = 0, start = 0, startText = 0] = widths;
      expect(content, 'the button is visible').toBeLessThanOrEqual(cell);
      expect(linkText, 'the end of the id is visible').toBeLessThanOrEqual(link);
      if (!path.startsWith('audit')) expect(startText).toBeGreaterThan(start);
    }
  });

  it('is left for an entry, and Escape returns to it with its filters', async () => {
    const id = randomUUID();
    await app.cancelled([id]);
    const page = await open(`submissions?prefix=${id}`);
    await rowOf(page, id).getByRole('link').click();
    await main(page).getByRole('heading', { level: 1 }).getByText(id).waitFor();
    await page.keyboard.press('Escape');
    await rowOf(page, id).waitFor();
    expect(new URL(page.url()).hash).toBe(`#/submissions?prefix=${id}`);
  });

  it('emphasizes the states that differ from those of most rows', async () => {
    const of = randomUUID();
    const [usual = '', tracked = ''] = [randomUUID(), randomUUID()];
    await app.cancelled([usual, randomUUID()], { metadata: { of } });
    await post(app.url, { submission_id: tracked, metadata: { of } });
    const page = await open(`submissions?metadata.of=${of}`);
    // Until all rows are there, they have no usual state.
    await rowOf(page, tracked).waitFor();
    const ground = (id: string) =>
      rowOf(page, id)
        .locator('.badge')
        .evaluate((one) => getComputedStyle(one).backgroundColor);
    const none = 'rgba(0, 0, 0, 0)';
    expect(await ground(usual)).toBe(none);
    expect(await ground(tracked)).not.toBe(none);
  });

  it('emphasizes webhooks that do not work, even if those are most', async () => {
    const description = randomUUID();
    for (let number = 0; number < 9; number++)
      await app.create({ url: 'https://hooks.example.com/', description, enabled: false });
    const page = await open('webhooks');
    const badge = rowOf(page, description).nth(8).locator('.badge');
    await badge.getByText('disabled').waitFor();
    expect(await badge.evaluate((one) => getComputedStyle(one).backgroundColor)).not.toBe(
      'rgba(0, 0, 0, 0)',
    );
  });

  it('shows short subjects whole and ids in one line, on every screen', async () => {
    const { id } = await app.create({ url: 'https://hooks.example.com/' });
    await app.cancelled(['operators']);
    const page = await open('');
    onTestFinished(() => page.setViewportSize({ width: 1_280, height: 720 }));
    for (const width of [340, 768, 1_280]) {
      await page.setViewportSize({ width, height: 720 });
      await goTo(page, 'audit?subject=operators');
      const isCut = await rowOf(page, 'submissions.cancel')
        .getByRole('link', { name: 'operators' })
        .evaluate((link) =>
          [link, ...link.children].some((one) => one.scrollWidth > one.clientWidth),
        );
      expect(isCut, `${width} px`).toBe(false);
      await goTo(page, 'webhooks');
      const start = await rowOf(page, id).locator('.start').boundingBox();
      expect(start?.height, `${width} px`).toBeLessThan(30);
    }
  });
});
