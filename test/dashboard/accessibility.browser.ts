import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { goTo, SKIPPED, signIn, useBrowser } from '../support/app/browser.ts';
import { call, post } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN, AS_ADMIN, SECOND, UPSTREAM_BEARER } from '../support/app/lookups.ts';
import { createWebhook, deliveriesOf } from '../support/app/notifying-app.ts';
import { useAppWithSandbox } from '../support/app/running-app.ts';
import { openReceiver } from '../support/servers/receiver.ts';
import { eventually } from '../support/until.ts';

const AXE = readFileSync(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
const app = useAppWithSandbox({
  adminToken: ADMIN_TOKEN,
  webhooks: { allow: ['127.0.0.0/8'], allow_http: true },
  upstream: { bearer: UPSTREAM_BEARER },
});
const browser = useBrowser();

/**
 * Rules that are disabled: replaced ones, those of level AAA, and those that require a human
 * decision.
 */
const NOT_RUN = /^(?:deprecated|wcag2\d?aaa|review-item)$|-obsolete$/;

/**
 * Returns the findings of all rules of axe, including the experimental ones and those for good
 * practice.
 */
async function violations(page: Page, rules?: string[]): Promise<string[]> {
  if (!(await page.evaluate('window.axe !== undefined'))) await page.evaluate(AXE);
  const known = await page.evaluate<{ ruleId: string; tags: string[] }[]>('axe.getRules()');
  const wanted = known
    .filter(({ tags }) => !tags.some((tag) => NOT_RUN.test(tag)))
    .map(({ ruleId }) => ruleId);
  expect(wanted).toContain('label-content-name-mismatch');
  const options = {
    resultTypes: ['violations'],
    runOnly: { type: 'rule', values: rules ?? wanted },
  };
  const { violations } = await page.evaluate<AxeResults>(`axe.run(${JSON.stringify(options)})`);
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
  );
}

/** Checks pages in light and dark mode. */
function inspect(page: Page) {
  const found: Record<string, string[]> = {};
  const check = async (name: string) => {
    await page.emulateMedia({ colorScheme: 'light' });
    found[name] = await violations(page);
    // The dark mode changes only colours.
    await page.emulateMedia({ colorScheme: 'dark' });
    found[`${name}, dark`] = await violations(page, ['color-contrast']);
  };
  return {
    check,
    async visit(path: string, until: () => Promise<unknown>) {
      await goTo(page, path);
      await until();
      await check(path);
    },
    expectNothing: () =>
      expect(found).toEqual(Object.fromEntries(Object.keys(found).map((name) => [name, []]))),
  };
}

/** The page without the banner of alerts. */
const main = (page: Page) => page.getByRole('main');

/**
 * Creates a submission with a timeline, a webhook with a dead letter about it, and a working
 * webhook.
 */
async function fill(): Promise<{ id: string; webhookId: string; working: string }> {
  const [receiver, taker] = [
    await openReceiver({ status: 410, body: 'gone' }),
    await openReceiver(),
  ];
  const { id: webhookId } = await createWebhook(app.url, { url: receiver.url });
  const { id: working } = await createWebhook(app.url, { url: taker.url });
  const id = app.submit();
  await post(app.url, { submission_ids: [id, randomUUID()], metadata: { order: 4711 } });
  await call(app.url, `/v1/submissions/${id}/wait?timeout_s=240`);
  const dead = `/v1/deliveries?destination=webhook:${webhookId}&state=dead`;
  await eventually(async () =>
    expect(deliveriesOf(await call(app.url, dead, { headers: AS_ADMIN })).deliveries).not.toEqual(
      [],
    ),
  );
  return { id, webhookId, working };
}

describe.skipIf(SKIPPED)('the dashboard is accessible', () => {
  it('axe reports nothing on any page, in light and dark mode', async () => {
    const { id, webhookId } = await fill();
    const page = await browser.open(app.url);
    const { check, visit, expectNothing } = inspect(page);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('No token yet?').click();
    await check('sign-in');
    await signIn(page, ADMIN_TOKEN);

    await visit('', async () => {
      await page.locator('canvas').first().waitFor();
      for (const summary of await page.getByText('As a table').all()) await summary.click();
    });
    await visit('submissions', () => page.getByRole('link', { name: id }).waitFor());
    await visit('submissions?prefix=nobody&metadata.order=1', () =>
      page.getByText('Nothing matches the filters').waitFor(),
    );
    await visit(`submissions/${id}`, async () => {
      await page
        .getByText(/fields? of its data/)
        .last()
        .click();
      await page
        .getByRole('link', { name: /^Delivery/ })
        .last()
        .waitFor();
    });
    await main(page).getByRole('button', { name: 'Change options' }).click();
    await page.getByRole('textbox', { name: 'Metadata as JSON' }).fill('{');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('not valid JSON').waitFor();
    await check('options with an error');
    await page.keyboard.press('Escape');
    await visit('submissions?tracked_since=yesterday', () =>
      main(page).getByRole('alert').waitFor(),
    );
    await visit('submissions/nobody', () => page.getByText('is not tracked').waitFor());
    await visit('webhooks', () => main(page).getByRole('link', { name: webhookId }).waitFor());
    await visit(`webhooks/${webhookId}`, () =>
      page.getByRole('row').filter({ hasText: id }).first().waitFor(),
    );
    await visit('webhooks/callbacks', () =>
      main(page).getByRole('button', { name: 'Disable' }).waitFor(),
    );
    await visit('deliveries?state=dead', () =>
      page.getByRole('row').filter({ hasText: id }).first().waitFor(),
    );
    await visit('users', async () => {
      await page.getByLabel('Name').fill(SECOND.name);
      await page.getByLabel('E-mail address').fill(SECOND.email);
      await page.getByRole('button', { name: 'Look up' }).click();
      await page.getByText('assigned_wallet').first().waitFor();
      await page.getByRole('button', { name: 'List users' }).click();
      await page.getByRole('table').waitFor();
    });
    await visit('nowhere', () => page.getByText('does not exist').waitFor());

    await page.route('**/v1/**', (route) => route.abort());
    await visit('submissions?status=failed', () =>
      page.getByRole('alert').getByText('Not connected').waitFor(),
    );
    expectNothing();
  });

  it('axe reports nothing on the page of tokens and its dialogs, in light and dark mode', async () => {
    const client = `deploys-${randomUUID()}`;
    const page = await browser.openAs(ADMIN_TOKEN, app.url);
    const { check, visit, expectNothing } = inspect(page);
    await visit('tokens', async () => {
      await page.getByRole('button', { name: 'Create a token' }).click();
      await page.getByLabel('Name of the client').fill(client);
    });
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByRole('region', { name: `Token of ${client}` }).waitFor();
    await check('a new token');
    await page.getByRole('button', { name: 'I have stored it' }).click();
    await page.getByRole('button', { name: `Revoke: ${client}` }).click();
    await page.getByRole('dialog').waitFor();
    await check('Revoke');
    await page.getByRole('button', { name: 'Back' }).click();
    expectNothing();
  });

  it('axe reports nothing on the pages of forms, channels, alerts and the audit, in light and dark mode', async () => {
    const page = await browser.openAs(ADMIN_TOKEN, app.url);
    const { visit, expectNothing } = inspect(page);
    await visit('webhooks', async () => {
      await page.getByRole('button', { name: 'Create a webhook' }).click();
      await page.getByLabel('Metadata filter').fill('{');
      await page.getByRole('button', { name: 'Create webhook' }).click();
      await page.getByText('is not valid JSON').waitFor();
    });
    await visit('channels', () => page.getByText('No channels.').waitFor());
    await visit('pacing', () => page.getByRole('heading', { name: 'default' }).waitFor());
    await visit('alerts', async () => {
      await page.getByRole('button', { name: 'Mute all alerts' }).click();
      await page.getByLabel('Reason').fill('upgrade');
      await page.getByRole('button', { name: 'Mute', exact: true }).click();
      await main(page).getByRole('row').filter({ hasText: 'upgrade' }).waitFor();
      await page.getByRole('button', { name: 'Mute all alerts' }).click();
    });
    await visit('audit', () => main(page).getByRole('row').first().waitFor());
    expectNothing();
  });

  it('axe reports nothing during actions on webhooks and deliveries, in light and dark mode', async () => {
    const { id, webhookId, working } = await fill();
    const page = await browser.openAs(ADMIN_TOKEN, app.url);
    const { check, visit, expectNothing } = inspect(page);
    const act = async (name: string, button: string, message: RegExp) => {
      await main(page).getByRole('button', { name: button }).first().click();
      await page.getByText(message).first().waitFor();
      await check(name);
    };
    await goTo(page, `webhooks/${webhookId}?state=dead`);
    await page.getByRole('row').filter({ hasText: id }).first().waitFor();
    await act('dead letters to replay', 'Replay dead letters', /All dead letters of/);
    await page.keyboard.press('Escape');
    await goTo(page, `webhooks/${working}`);
    await act('a webhook that is tested', 'Send test event', /^Delivered in/);
    await act('a webhook that is edited', 'Edit', /Metadata filter/);
    await page.keyboard.press('Escape');
    await act('a secret that is rotated', 'Rotate secret', /The old secret also signs/);
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate', exact: true }).click();
    await page.getByText(/^whsec_\S/).waitFor();
    await check('a secret');
    await act('a dialog', 'Disable', /become dead letters/);
    await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click();
    await page.getByText('no longer receives events').first().waitFor();
    await check('a webhook that is disabled');
    await act('a webhook that is enabled', 'Enable', /receives events again/);
    await visit('deliveries', () =>
      page.getByRole('row').filter({ hasText: id }).first().waitFor(),
    );
    await page
      .getByRole('link', { name: /^Delivery/ })
      .first()
      .click();
    await page.getByText('Request body').waitFor();
    await check('a delivery with its event');
    await visit(`webhooks/${working}?state=discarded`, () =>
      page.getByText('Nothing matches the filters').waitFor(),
    );
    await visit('webhooks/wh_nobody', () => page.getByText('Webhook not found').waitFor());
    expectNothing();
  });

  it('axe reports nothing while the server is unreachable, in light and dark mode', async () => {
    const page = await browser.open(app.url);
    const { check, expectNothing } = inspect(page);
    await page.route('**/v1/events**', (route) => route.abort());
    await signIn(page, ADMIN_TOKEN);
    await page.getByText('Disconnected: this page may be outdated').waitFor();
    await check('disconnected');
    expectNothing();
  });

  it('can be operated with the keyboard only', async () => {
    const id = randomUUID();
    await post(app.url, { submission_ids: [id, randomUUID()] });
    const page = await browser.open(app.url);
    const focused = () =>
      page.evaluate<string>('document.activeElement.innerText || document.activeElement.id');
    await expect.poll(focused).toBe('token');
    await signIn(page, ADMIN_TOKEN);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.keyboard.press('Tab');
    await expect.poll(focused).toBe('Skip to content');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('main');
    await page.getByRole('link', { name: /^Submissions/ }).focus();
    await page.keyboard.press('Enter');
    // The heading, not the link with the same name.
    await expect.poll(() => page.evaluate('document.activeElement.tagName')).toBe('H1');
    await page.getByRole('link', { name: id }).focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.title()).toBe(`${id} · dawatch`);
    expect(await focused()).toBe(id);
  });

  it('has keys for the search, the rows of a list and their help, which can be disabled', async () => {
    const id = randomUUID();
    await post(app.url, { submission_ids: [id, randomUUID()] });
    const page = await browser.openAs(ADMIN_TOKEN, app.url);
    const focusIn = (selector: string) => page.locator(`${selector}:focus`).waitFor();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.keyboard.press('/');
    await focusIn('input[name="prefix"]');
    await page.keyboard.type(`${id.slice(0, 8)}?/j`);
    expect(await page.locator('input[name="prefix"]').inputValue()).toMatch(/\?\/j$/);
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: id }).waitFor();
    await page.keyboard.press('j');
    await focusIn('tbody tr:nth-child(1) a');
    await page.keyboard.press('j');
    await focusIn('tbody tr:nth-child(2) a');
    await page.keyboard.press('k');
    await focusIn('tbody tr:nth-child(1) a');
    expect(
      await page.locator('a:focus').evaluate((one) => getComputedStyle(one).outlineStyle),
    ).toBe('solid');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'History' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('heading', { name: 'Submissions', exact: true }).waitFor();
    await page.keyboard.press('?');
    const help = page.getByRole('dialog', { name: 'Keys' });
    await help.getByText('Next row').waitFor();
    const { check, expectNothing } = inspect(page);
    await check('help');
    expectNothing();
    await help.getByLabel('Use these keys').uncheck();
    await help.getByRole('button', { name: 'Close' }).click();
    await help.waitFor({ state: 'detached' });
    await page.keyboard.press('?');
    await page.keyboard.press('Tab');
    expect(await help.count()).toBe(0);
  });
});
