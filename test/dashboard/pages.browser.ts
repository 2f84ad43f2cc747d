import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { sha256 } from '../../src/access/access.ts';
import { CredentialStore, makeToken } from '../../src/access/credentials-store.ts';
import { openBeside } from '../../src/ledger/open.ts';
import { goTo, SKIPPED, signIn, useBrowser } from '../support/app/browser.ts';
import { call, post } from '../support/app/http-calls.ts';
import {
  ADMIN_TOKEN,
  AS_ADMIN,
  openLookups,
  SECOND,
  UPSTREAM_BEARER,
} from '../support/app/lookups.ts';
import { createWebhook } from '../support/app/notifying-app.ts';
import { API_KEY, openApp, useAppWithSandbox } from '../support/app/running-app.ts';
import { openReceiver } from '../support/servers/receiver.ts';
import { serve } from '../support/servers/upstream-server.ts';
import { tempFolder } from '../support/temp-folder.ts';

const app = useAppWithSandbox({
  adminToken: ADMIN_TOKEN,
  webhooks: { allow: ['127.0.0.0/8'], allow_http: true },
  upstream: { bearer: UPSTREAM_BEARER },
});
const browser = useBrowser();
const track = (fields: object) => post(app.url, fields);
const main = (page: Page) => page.getByRole('main');
const rowOf = (page: Page, id: string) => page.getByRole('row').filter({ hasText: id });

const open = (path = '') => browser.show(app.url, path);

function operatorToken(): string {
  const token = makeToken('operator');
  const { database, close } = openBeside({ file: app.database, now: 0 });
  new CredentialStore(database).add({ hash: sha256(token), role: 'operator', name: 'on call' }, 0);
  close();
  return token;
}

describe.skipIf(SKIPPED)('the dashboard in a browser', () => {
  describe('signing in', () => {
    it('shows no page and no title for an unknown path', async () => {
      const page = await open('overview/x');
      await page.getByRole('heading', { name: 'Not found' }).waitFor();
      await expect.poll(() => page.title()).toBe('Not found · dawatch');
      await goTo(page, 'submissions/x');
      await expect.poll(() => page.title()).toBe('x · dawatch');
      await goTo(page, '');
      await expect.poll(() => page.title()).toBe('Overview · dawatch');
    });

    it('explains what is wrong with a token, and accepts a valid one', async () => {
      const page = await browser.open(app.url);
      const alert = page.getByRole('alert');
      await page.getByRole('button', { name: 'Sign in' }).click();
      await alert.getByText('Enter a token').waitFor();
      await page.getByLabel('Token', { exact: true }).fill('not a token');
      await page.keyboard.press('Enter');
      await alert.getByText('no spaces').waitFor();
      await page.getByLabel('Token', { exact: true }).fill('nobodys');
      await page.keyboard.press('Enter');
      await alert.getByText('Unknown token').waitFor();
      await signIn(page, API_KEY);
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
    });

    it('shows each role the pages it may use', async () => {
      const names = (page: Page) =>
        page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allInnerTexts();
      const admin = await open();
      await expect
        .poll(() => names(admin))
        .toEqual([
          'Overview',
          'Submissions',
          'Pacing',
          'Alerts',
          'Webhooks',
          'Channels',
          'Deliveries',
          'Users',
          'Tokens',
          'Audit',
        ]);
      const operator = await browser.openAs(operatorToken(), app.url);
      await expect
        .poll(() => names(operator))
        .toEqual([
          'Overview',
          'Submissions',
          'Pacing',
          'Alerts',
          'Webhooks',
          'Channels',
          'Deliveries',
        ]);
      await goTo(operator, 'webhooks/callbacks');
      await operator.getByText('the callback_url of each submission').waitFor();
      for (const [path, text] of [
        ['webhooks/callbacks', 'This session cannot change webhooks'],
        ['webhooks', 'This session cannot change webhooks'],
        ['deliveries', 'Deliveries'],
        ['channels', 'This session cannot test them'],
        ['alerts', 'This session cannot mute alerts'],
      ] as const) {
        await goTo(operator, path);
        await main(operator).getByText(text).first().waitFor();
        const loading = main(operator).locator('.state[role="status"]');
        await expect.poll(() => loading.count(), { message: path }).toBe(0);
        const buttons = main(operator).getByRole('button', {
          name: /^(?!Refresh$|Copy |Apply$|.*attempts)/,
        });
        expect(await buttons.allTextContents(), path).toEqual([]);
      }
      await goTo(operator, 'audit');
      await operator.getByText('you have no access').waitFor();
      const service = await browser.openAs(API_KEY, app.url);
      await expect
        .poll(() => names(service))
        .toEqual(['Overview', 'Submissions', 'Pacing', 'Alerts']);
      await goTo(service, 'webhooks');
      await service.getByText('you have no access').waitFor();
    });

    it('explains if another program responds, such as the sign-in page of a proxy', async () => {
      const login = { contentType: 'text/html', body: '<!doctype html><title>Sign in</title>' };
      const page = await browser.open(`${app.url}/#/submissions`);
      await page.route('**/v1/whoami', (route) => route.fulfill(login));
      await page.getByLabel('Token', { exact: true }).fill(API_KEY);
      await page.keyboard.press('Enter');
      await page.getByRole('alert').getByText('The response is not from dawatch').waitFor();
      await page.unroute('**/v1/whoami');
      await signIn(page, API_KEY);
      await page.route('**/v1/submissions?*', (route) => route.fulfill(login));
      await page.getByRole('button', { name: 'Refresh' }).click();
      const alert = main(page).getByRole('alert');
      await alert.getByText('Not connected').waitFor();
      await alert.getByText('The response is not from dawatch').waitFor();
    });
  });

  describe('the overview', () => {
    it('counts a finalization when it happens, and says that everything works', async () => {
      await track({ submission_id: app.submit() });
      const page = await open();
      const finalized = page.getByRole('link', { name: /^\d+ finalized$/ });
      await finalized.waitFor();
      const before = (await finalized.textContent()) ?? '';
      await track({ submission_id: app.submit() });
      await finalized.and(page.locator(`:not(:text-is(${JSON.stringify(before)}))`)).waitFor();
      await page.getByText('Everything works').waitFor();
    });

    it('describes its plots in words and as tables', async () => {
      await track({ submission_id: app.submit() });
      const page = await open();
      await page
        .getByRole('figure')
        .filter({ hasText: 'Finalized per minute' })
        .locator('canvas')
        .waitFor();
      await page.getByText(/^finalized \d+$/).waitFor();
      await page.getByText('As a table: Finalized per minute').click();
      const rows = page.getByRole('table', { name: /Finalized per minute/ }).getByRole('row');
      await rows.getByRole('link').first().click();
      await page.getByRole('heading', { name: 'Submissions' }).waitFor();
      const { status, ended_since, ended_until } = Object.fromEntries(
        new URLSearchParams(page.url().split('?')[1]),
      );
      expect([status, Date.parse(ended_until ?? '') - Date.parse(ended_since ?? '')]).toEqual([
        'finalized',
        60_000,
      ]);
    });
  });

  describe('one submission', () => {
    it('shows the whole history, and the end when it happens', async () => {
      const id = app.submit();
      await track({ submission_id: id, metadata: { order: 4711 } });
      const page = await open(`submissions/${id}`);
      const timeline = main(page).getByRole('list').first();
      await timeline.getByText('finalized', { exact: true }).waitFor();
      await expect
        .poll(() => timeline.getByRole('listitem').first().textContent())
        .toContain('tracking');
      await expect
        .poll(() => timeline.getByRole('listitem').last().textContent())
        .toMatch(/finalized.*after it was tracked/s);
      await timeline
        .getByText(/fields? of its data/)
        .last()
        .click();
      await timeline.getByText('block_number').waitFor();
      await page.getByText('4711', { exact: true }).waitFor();
      await goTo(page, 'pacing');
      const upstream = page.getByRole('region', { name: 'default', exact: true }).first();
      const polls = upstream.getByText(/\d+ found final/);
      const shown = await polls.textContent();
      await track({ submission_id: app.submit() });
      await expect.poll(() => polls.textContent()).not.toBe(shown);
    });

    it('shows hostile text of an upstream as text', async () => {
      const hostile = '<img src=x onerror=alert(3)><script>alert(4)</script>';
      const upstream = await serve((request, response) => {
        const id = new URL(request.url ?? '/', 'http://upstream').searchParams.get('submission_id');
        const pending = {
          id,
          state: hostile,
          error: null,
          data: { user_id: hostile, [hostile]: hostile },
        };
        const failing = { id, state: 'Error', error: hostile, data: null };
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify(id === 'fails' ? failing : pending));
      });
      const own = await openApp({
        database: join(tempFolder(), 'dawatch.db'),
        upstreamUrl: upstream.url,
      });
      onTestFinished(() => own.close());
      await post(own.url, { submission_ids: ['fails', 'pends'], metadata: { [hostile]: hostile } });
      const page = await browser.openAs(API_KEY, own.url);
      let dialogs = 0;
      page.on('dialog', (dialog) => {
        dialogs += 1;
        void dialog.dismiss();
      });
      for (const id of ['fails', 'pends']) {
        await goTo(page, `submissions/${id}`);
        await page.getByRole('heading', { name: id }).waitFor();
        await page.locator('.timeline').getByText(hostile).first().waitFor();
        expect([dialogs, await page.locator('main img, main script').count()]).toEqual([0, 0]);
      }
    });

    it('replays a delivery to a receiver that works again', async () => {
      const receiver = await openReceiver();
      const { id: webhookId } = await createWebhook(app.url, { url: receiver.url });
      // Without its receiver, it would fail beside the other tests.
      onTestFinished(async () => {
        await call(app.url, `/v1/webhooks/${webhookId}`, { method: 'DELETE', headers: AS_ADMIN });
      });
      const id = randomUUID();
      await track({ submission_id: id });
      await call(app.url, `/v1/submissions/${id}`, { method: 'DELETE' });
      const page = await open(`submissions/${id}`);
      const row = rowOf(page, webhookId);
      await row.getByText('delivered').waitFor();
      await row.getByRole('button', { name: 'Replay' }).click();
      await page.getByRole('dialog').getByText('with the same id').waitFor();
      await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click();
      await page
        .getByText(/waits to be sent again/)
        .first()
        .waitFor();
      await expect.poll(() => receiver.requests.length).toBe(2);
      await row.getByRole('link', { name: /^Delivery/ }).click();
      await expect.poll(() => page.getByText(/HTTP 200 ·/).count()).toBe(2);
      expect(receiver.requests[0]?.headers['webhook-id']).toBe(
        receiver.requests[1]?.headers['webhook-id'],
      );
    });
  });

  describe('for admins', () => {
    it("users: require the upstream's own token if tokens are forwarded, for every role", async () => {
      const forwarding = await openLookups({ bearer: null });
      const page = await browser.openAs(forwarding.tokens.service, `${forwarding.url}/#/users`);
      await page.getByLabel('Upstream token').fill('cut…');
      await page.getByRole('button', { name: 'List users' }).click();
      await page.getByRole('alert').getByText('A token contains no spaces').waitFor();
      await page.getByLabel('Upstream token').fill('nobodys');
      await page.getByRole('button', { name: 'List users' }).click();
      await page.getByText('the upstream refuses this token').waitFor();
      await page.getByLabel('Upstream token').fill(UPSTREAM_BEARER);
      await page.getByRole('button', { name: 'List users' }).click();
      await page.getByRole('table', { name: '25 users' }).waitFor();
    });

    it('users: looks one up and lists them', async () => {
      const page = await open('users');
      await page.getByLabel('Name').fill(SECOND.name);
      await page.getByLabel('E-mail address').fill('nobody@example.com');
      await page.getByRole('button', { name: 'Look up' }).click();
      await page.getByText('no user has this name and this e-mail address').waitFor();
      await page.getByLabel('E-mail address').fill(SECOND.email);
      await page.getByRole('button', { name: 'Look up' }).click();
      await page.getByText('assigned_wallet').first().waitFor();
      await page.getByLabel('Limit').fill('3');
      await page.getByRole('button', { name: 'List users' }).click();
      await page.getByRole('table', { name: '3 users' }).waitFor();
      expect(await page.getByLabel('Limit').inputValue()).toBe('3');
    });
  });
});
