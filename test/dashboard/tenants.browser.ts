import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Role } from '../../src/domain/access/scopes.ts';
import { goTo, SKIPPED, signIn, TEST_MS, useBrowser } from '../support/app/browser.ts';
import { UPSTREAM_BEARER } from '../support/app/lookups.ts';
import { openTenants, track } from '../support/app/tenants.ts';

const browser = useBrowser();
const main = (page: Page) => page.getByRole('main');
const selectionOf = (page: Page) => page.getByRole('banner').getByRole('combobox', { name: 'Tenant' });
/** Resolves when the page is loaded again. */
async function selectNone(page: Page): Promise<void> {
  await selectionOf(page).selectOption('None');
  await page.waitForURL((url) => url.search === '');
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
}
const navigation = (page: Page) => page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allTextContents();

describe.skipIf(SKIPPED)('the dashboard of a tenant', { timeout: TEST_MS }, () => {
  let app: Awaited<ReturnType<typeof openTenants>>;
  const ends: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    app = await openTenants({ tenants: { acme: {}, globex: {} }, upstream: { bearer: UPSTREAM_BEARER } }, (end) =>
      ends.push(end),
    );
    return async () => {
      for (const end of ends) await end();
    };
  }, TEST_MS);
  async function open(tenant: string | null, role: Role = 'admin'): Promise<Page> {
    const page = await browser.open(app.url);
    await signIn(page, app.client(tenant, role).token);
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
    return page;
  }

  it('names the tenant of the credential on every page, and none without one', async () => {
    const page = await open('acme', 'service');
    const tenant = page.getByRole('banner').locator('dl > div').filter({ hasText: 'Tenant' }).getByRole('definition');
    for (const path of ['', 'submissions', 'pacing', 'alerts']) {
      await goTo(page, path);
      await expect.poll(() => tenant.allTextContents()).toEqual(['acme']);
    }
    const own = await open(null);
    await own.getByText('Signed in as').waitFor();
    await expect.poll(() => selectionOf(own).inputValue()).toBe('');
  });

  it('shows only what belongs to the tenant', async () => {
    await track(app.client('acme'), 'of-acme');
    await track(app.client('globex'), 'of-globex');
    const page = await open('acme');
    await goTo(page, 'submissions');
    await expect.poll(() => main(page).locator('tbody').getByRole('link').allTextContents()).toEqual(['of-acme']);
  });

  it('has no page for what a credential of a tenant may not do', async () => {
    const page = await open('acme');
    await expect.poll(() => navigation(page)).toContain('Audit');
    expect(await navigation(page)).not.toContain('Users');
    await goTo(page, 'users');
    await page.getByText('you have no access').waitFor();
    await goTo(page, 'channels');
    await main(page).getByText('Channels belong to the operator of the server').waitFor();
    expect(await main(page).getByText('in the settings').count()).toBe(0);
    const own = await open(null);
    await expect.poll(() => navigation(own)).toContain('Users');
  });

  it('lets an admin without a tenant select one, whose data alone it shows, with the live feed', async () => {
    const page = await open(null);
    await track(app.client(null), 'of-none');
    await track(app.client('acme'), 'of-acme');
    await goTo(page, 'submissions');
    const ids = () => main(page).locator('tbody').getByRole('link').allTextContents();
    await expect.poll(ids).toEqual(['of-none']);
    const selection = selectionOf(page);
    await selection.selectOption('acme');
    await expect.poll(ids).toEqual(['of-acme']);
    expect(page.url()).toContain('?tenant=acme#/submissions');
    expect(await navigation(page)).not.toContain('Users');
    await page.getByText('Live', { exact: true }).waitFor();
    await page.reload();
    await expect.poll(ids).toEqual(['of-acme']);
    await main(page).getByRole('link', { name: 'of-acme' }).click();
    await main(page).getByRole('button', { name: 'Cancel tracking' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel tracking' }).click();
    await main(page).getByText('Cancelled.', { exact: true }).waitFor();
    await selectNone(page);
    await goTo(page, 'submissions');
    await expect.poll(ids).toEqual(['of-none']);
    expect(new URL(page.url()).search).toBe('');
  });

  it('reports a tenant in the address that does not exist', async () => {
    const page = await browser.open(`${app.url}/?tenant=nobody`);
    await signIn(page, app.client(null).token);
    await goTo(page, 'submissions');
    await main(page).getByText('there is no tenant nobody').waitFor();
    await selectNone(page);
    await goTo(page, 'submissions');
    await expect.poll(() => main(page).locator('tbody').getByRole('link').count()).toBeGreaterThan(0);

    const odd = await browser.open(`${app.url}/?tenant=${encodeURIComponent('ä b')}`);
    await signIn(odd, app.client(null).token);
    await goTo(odd, 'submissions');
    await main(odd).getByText('must be one name of a tenant').waitFor();
  });

  it('ignores a tenant in the address that an earlier session selected', async () => {
    await track(app.client('acme'), 'of-acme');
    const page = await browser.open(`${app.url}/?tenant=globex`);
    await signIn(page, app.client('acme').token);
    await goTo(page, 'submissions');
    await expect.poll(() => main(page).locator('tbody').getByRole('link').allTextContents()).toEqual(['of-acme']);
    await page.getByRole('banner').getByText('acme', { exact: true }).waitFor();
    expect(await selectionOf(page).count()).toBe(0);
  });

  it('lists and creates the tokens of the tenant; without a tenant, the list names the tenant of each', async () => {
    const page = await open('acme');
    await goTo(page, 'tokens');
    await main(page).getByText('The credentials of the tenant acme').waitFor();
    await page.getByLabel('Name of the client').fill('billing');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('button', { name: 'I have stored it' }).click();
    await main(page).getByRole('row').filter({ hasText: 'billing' }).getByText('acme', { exact: true }).waitFor();
    expect(await main(page).getByRole('row').filter({ hasText: 'of globex' }).count()).toBe(0);
    const own = await open(null);
    await goTo(own, 'tokens');
    for (const [name, tenant] of [
      ['billing', 'acme'],
      ['the service of globex', 'globex'],
      ['the service of null', 'none'],
    ] as const)
      await main(own).getByRole('row').filter({ hasText: name }).getByText(tenant, { exact: true }).waitFor();
  });
});
