import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { expectCopied, SKIPPED, useBrowser } from '../support/app/browser.ts';
import { call } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { useApp } from '../support/app/running-app.ts';

type Credential = { secret: string };

const app = useApp({ adminToken: ADMIN_TOKEN });
const browser = useBrowser();
const as = (token: string, method: string, path: string, body?: object) =>
  call(app.url, path, {
    method,
    headers: { 'x-api-key': [], authorization: `Bearer ${token}` },
    ...(body && { body }),
  });
const create = async (fields: object): Promise<Credential> =>
  JSON.parse((await as(ADMIN_TOKEN, 'POST', '/v1/credentials', fields)).text);
const whoami = async (token: string) => {
  const { status, text } = await as(token, 'GET', '/v1/whoami');
  return { status, ...JSON.parse(text) };
};
const rowOf = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name });

async function open(): Promise<Page> {
  const page = await browser.show(app.url, 'tokens');
  await page.getByRole('heading', { name: 'Tokens', exact: true }).waitFor();
  return page;
}

describe.skipIf(SKIPPED)('the page of tokens', () => {
  it('creates a token with a role and an expiry, and shows it once, with a button that copies it', async () => {
    const name = `dashboards-${randomUUID()}`;
    const page = await open();
    await page.getByRole('button', { name: 'Create a token' }).click();
    await page.getByLabel('Role').selectOption('operator');
    await page.getByLabel('Expires').selectOption('in 90 days');
    await page.getByLabel('Name of the client').fill(name);
    // A pointer on the list would hold the new row back.
    await page.keyboard.press('Enter');
    await rowOf(page, name).getByText('operator').waitFor();
    const section = page.getByRole('region', { name: `Token of ${name}` });
    const secret = (await section.locator('code').textContent()) ?? '';
    await section.getByRole('button', { name: 'Copy the token' }).click();
    await expectCopied(page, secret);
    await section.getByRole('button', { name: 'I have stored it' }).click();
    await page.getByText(secret).waitFor({ state: 'detached' });
    expect(await whoami(secret)).toMatchObject({
      status: 200,
      role: 'operator',
      name,
    });
  });

  it('revokes a token after a confirmation', async () => {
    const name = `leaving-${randomUUID()}`;
    const { secret } = await create({ name, role: 'service' });
    const page = await open();
    await page.getByRole('button', { name: `Revoke: ${name}` }).click();
    await page.getByRole('dialog').getByText('is refused from then on').waitFor();
    expect((await whoami(secret)).status).toBe(200);
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await rowOf(page, name).getByText('revoked', { exact: true }).waitFor();
    expect((await whoami(secret)).status).toBe(401);
  });
});
