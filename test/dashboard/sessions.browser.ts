import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  clearFilters,
  clickEach,
  goTo,
  SKIPPED,
  setFilter,
  signIn,
  useBrowser,
} from '../support/app/browser.ts';
import { call } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { API_KEY, openApp } from '../support/app/running-app.ts';
import { shiftedClock } from '../support/app/sessions.ts';
import { storeToken } from '../support/ledger/audit.ts';
import { freePort } from '../support/servers/free-port.ts';
import { IS_NGINX_MISSING, startNginx } from '../support/servers/nginx.ts';
import { openWithProvider } from '../support/servers/oidc-provider.ts';
import { selfSigned } from '../support/servers/receiver.ts';
import { tempFolder } from '../support/temp-folder.ts';

const browser = useBrowser();
const CERTIFICATE = selfSigned();
const form = (page: Page) => page.getByLabel('Token', { exact: true });
const overview = (page: Page) => page.getByRole('heading', { name: 'Overview' });

async function open() {
  const database = join(tempFolder(), 'ledger.db');
  const clock = shiftedClock();
  const app = await openApp({ database, clock });
  onTestFinished(() => app.close());
  return { url: app.url, clock, token: () => storeToken(database, 'service', 'ada') };
}

describe.skipIf(SKIPPED)('a session of the dashboard', () => {
  it('is shared by reloads and tabs, and signing out of one signs out of all', async () => {
    const { url } = await open();
    const page = await browser.open(url);
    await signIn(page, API_KEY);
    await page.reload();
    await overview(page).waitFor();
    const another = await page.context().newPage();
    await another.goto(url);
    await overview(another).waitFor();
    await another.getByText('Live', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await form(page).waitFor();
    await form(another).waitFor();
    expect(await page.getByRole('alert').textContent()).toBe('');
    expect(await page.context().cookies()).toEqual([]);
    await signIn(page, API_KEY);
    await overview(another).waitFor();
  });

  it('leaves the token nowhere that a script can read', async () => {
    const { url, token } = await open();
    const { token: secret } = token();
    const page = await browser.open(url);
    await signIn(page, secret);
    const readable = await page.evaluate<string>(
      'JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }, document.documentElement.outerHTML])',
    );
    expect(readable).not.toContain(secret);
    expect(readable).not.toContain('dawatch-session=');
    expect(await page.context().cookies()).toMatchObject([
      { name: 'dawatch-session', httpOnly: true, sameSite: 'Strict', path: '/' },
    ]);
  });

  it('leads back to the sign-in when it expires or its token is revoked', async () => {
    const { url, clock, token } = await open();
    const page = await browser.open(`${url}/#/submissions`);
    // The page may notice it by itself.
    const refresh = () => page.getByRole('button', { name: 'Refresh' }).evaluateAll(clickEach);
    const { token: secret, revoke } = token();
    await signIn(page, secret);
    revoke();
    await refresh();
    await page.getByRole('alert').getByText('The session has ended').waitFor();
    await signIn(page, API_KEY);
    clock.advance(3 * 3_600_000);
    await refresh();
    await page.getByRole('alert').getByText('The session has ended').waitFor();
  });

  it('is not asked for again because the server does not respond at first', async () => {
    const { url } = await open();
    const page = await browser.open(url);
    await signIn(page, API_KEY);
    await page.route('**/v1/session', (route) => route.abort());
    await page.reload();
    await page.getByRole('alert').getByText('The server does not respond').waitFor();
    expect(await form(page).count()).toBe(0);
    await page.unroute('**/v1/session');
    await overview(page).waitFor();
  });

  it.skipIf(CERTIFICATE === undefined || IS_NGINX_MISSING).each([
    ['at its root', '/', '__Host-dawatch-session'],
    ['below a path', '/watch/', '__Host-dawatch-session-watch'],
  ])(
    'works behind nginx with https %s: the dashboard, a sign-in at a provider, and /docs',
    async (_, path, name) => {
      const port = await freePort();
      const url = `https://127.0.0.1:${port}${path}`;
      const database = join(tempFolder(), 'ledger.db');
      const app = await openWithProvider({ database, publicUrl: url });
      await startNginx({ port, path, target: app.url, tls: CERTIFICATE ?? expect.fail() });
      const { provider } = app;
      const page = await browser.open(url, { origins: [provider.url] });
      await signIn(page, API_KEY);
      await page.getByText('Live', { exact: true }).waitFor();
      expect(await page.context().cookies()).toMatchObject([
        { name, path: '/', secure: true, httpOnly: true, sameSite: 'Strict' },
      ]);
      await page.reload();
      await page.getByRole('button', { name: 'Sign out' }).click();
      await form(page).waitFor();
      expect(await page.context().cookies()).toEqual([]);

      await page.getByRole('link', { name: 'Sign in with single sign-on' }).click();
      await page.getByText('ada@example.com').waitFor();
      expect(page.url()).toBe(`${url}#/`);
      await page.getByRole('button', { name: 'Sign out' }).click();
      await form(page).waitFor();
      expect(page.url()).toContain(url);

      for (const docs of ['docs', 'docs/']) {
        await page.goto(`${url}${docs}`);
        await page.locator('[data-path="/livez"]').click();
        await page.getByRole('button', { name: 'Execute' }).click();
        await page.locator('.request-url').getByText(`${url}livez`, { exact: true }).waitFor();
        await page.locator('.live-responses-table').getByText('200', { exact: true }).waitFor();
      }
    },
  );

  it('works below a path that a proxy removes, also if its last slash is missing', async () => {
    const { url } = await open();
    const proxy = createServer(async (request, response) => {
      const path = (request.url ?? '').replace(/^\/watch/, '');
      const found = await fetch(`${url}${path}`);
      response.writeHead(found.status, Object.fromEntries(found.headers));
      response.end(await found.bytes());
    });
    await new Promise<void>((resolve) => void proxy.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void proxy.close());
    const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/watch`;
    const page = await browser.open(`${address}?a=b#/submissions`);
    await form(page).waitFor();
    expect(page.url()).toBe(`${address}/?a=b#/submissions`);
  });

  it('reports that a sign-out did not reach the server', async () => {
    const { url } = await open();
    const page = await browser.open(url);
    await signIn(page, API_KEY);
    await page.route('**/v1/session', (route) => route.abort());
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('alert').getByText('You may still be signed in').waitFor();
  });

  it.each(['127.0.0.1', 'localhost'])(
    'is of no use to a page of another origin at %s',
    async (host) => {
      const { url } = await open();
      const foreign = createServer((_, response) =>
        response.setHeader('content-type', 'text/html').end('<title>x</title>'),
      );
      await new Promise<void>((resolve) => void foreign.listen(0, '127.0.0.1', resolve));
      onTestFinished(() => void foreign.close());
      const origin = `http://${host}:${(foreign.address() as AddressInfo).port}`;
      const page = await browser.open(url, { origins: [origin] });
      await signIn(page, API_KEY);
      const statuses: number[] = [];
      const attacker = await page.context().newPage();
      attacker.on(
        'response',
        (response) => void (response.url().startsWith(url) && statuses.push(response.status())),
      );
      await attacker.goto(`${origin}/`);
      const send = (init: string) =>
        attacker.evaluate<string>(
          `fetch('${url}/v1/submissions', ${init}).then((it) => it.type, () => 'failed')`,
        );
      const body = `method: 'POST', credentials: 'include', body: '{"submission_id":"stolen"}'`;
      expect(await send(`{ mode: 'no-cors', ${body} }`)).toBe('failed');
      expect(await send(`{ ${body}, headers: { 'content-type': 'application/json' } }`)).toBe(
        'failed',
      );
      expect(await send(`{ ${body}, headers: { 'x-requested-with': 'dawatch' } }`)).toBe('failed');
      expect(await send(`{ credentials: 'include' }`)).toBe('failed');
      await attacker.evaluate(`(() => {
      document.body.innerHTML = '<form method="post" enctype="text/plain" action="${url}/v1/submissions"><input name="a"></form>';
      document.forms[0].submit();
    })()`);
      await attacker.waitForURL(`${url}/v1/submissions`);
      expect(statuses.length).toBeGreaterThan(0);
      expect(statuses.filter((status) => status < 400 && status !== 204)).toEqual([]);
      expect((await call(url, '/v1/submissions/stolen')).status).toBe(404);
    },
  );
});

describe.skipIf(SKIPPED)('a sign-in at a provider of OpenID Connect', () => {
  async function openProvider(address = '/#/submissions?status=failed') {
    const database = join(tempFolder(), 'ledger.db');
    const opened = await openWithProvider({ database, adminToken: ADMIN_TOKEN });
    const { url, provider } = opened;
    const page = await browser.open(`${url}${address}`, { origins: [provider.url] });
    const signInThere = () =>
      page.getByRole('link', { name: 'Sign in with single sign-on' }).click();
    return { ...opened, page, signInThere };
  }

  it('leads back to the page that was open, survives a reload, and ends with signing out', async () => {
    const { url, page, provider, signInThere } = await openProvider();
    await signInThere();
    await page.getByText('ada@example.com').waitFor();
    await page.getByText('(operator)').waitFor();
    expect(page.url()).toBe(`${url}/#/submissions?status=failed`);
    await page.reload();
    await page.getByText('ada@example.com').waitFor();
    expect(await page.evaluate('document.cookie')).toBe('');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await form(page).waitFor();
    provider.person = { sub: 'ada', email: 'ada@example.com', groups: ['admins'] };
    await signInThere();
    await page.getByText('(admin)').waitFor();
  });

  it('of a revoked person is refused', async () => {
    const { page, signInThere } = await openProvider();
    await signInThere();
    await page.getByText('ada@example.com').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await signIn(page, ADMIN_TOKEN);
    await goTo(page, 'tokens');
    await page.getByRole('button', { name: 'Revoke: person:1' }).click();
    await page.getByRole('dialog').getByText('no further sign-in succeeds').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('The token of person:1 is revoked.').first().waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await signInThere();
    await page.getByRole('alert').getByText('An administrator has revoked your access.').waitFor();
  });

  it('is in the audit under the address of the person, which finds its entries', async () => {
    const { page, signInThere } = await openProvider();
    await signInThere();
    await page.getByText('ada@example.com').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await signIn(page, ADMIN_TOKEN);
    await goTo(page, 'audit');
    const rows = page.getByRole('main').getByRole('row');
    const signIns = rows.filter({ hasText: 'sessions.create' });
    await signIns.getByRole('link', { name: 'ada@example.com', exact: true }).click();
    await expect.poll(() => rows.count()).toBe(3);
    expect(await rows.filter({ hasText: 'person:1' }).count()).toBe(0);
    await clearFilters(page);
    await setFilter(page, 'About e-mail address', 'ADA@example.com');
    await expect.poll(() => rows.count()).toBe(2);
    await rows.getByRole('link', { name: /^a…@example\.com [0-9a-f]{8}$/ }).click();
    await expect
      .poll(() => page.getByLabel('About e-mail address').inputValue())
      .toMatch(/^[0-9a-f]{64}$/);
    await page.reload();
    await expect.poll(() => rows.count()).toBe(2);
  });

  it('explains why it failed outside the field for a token, and can be repeated', async () => {
    const { page, provider, signInThere } = await openProvider();
    const alert = page.getByRole('alert');
    provider.person = { sub: 'ada', groups: ['<img src=x>'] };
    await signInThere();
    await alert.getByText('Your account has no role in dawatch').waitFor();
    const token = page.getByLabel('Token');
    expect([
      await token.getAttribute('aria-invalid'),
      await token.getAttribute('aria-describedby'),
      await page.locator('form').getByText('no role').count(),
    ]).toEqual([null, 'token-hint', 0]);
    expect(new URL(page.url()).hash).toBe('#/');
    provider.fault = (path, response) => path !== '' && Boolean(response.destroy());
    await signInThere();
    // Not waitForURL, which rejects before the browser shows the failure.
    await expect.poll(() => page.url()).toMatch(/^chrome-error:/);
    provider.fault = undefined;
    provider.person = { sub: 'grace', email: 'grace@example.com', groups: ['watchers'] };
    await page.goBack();
    await signInThere();
    await page.getByText('grace@example.com').waitFor();
  });
});
