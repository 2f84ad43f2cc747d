import { describe, expect, test } from 'vitest';
import { SKIPPED, signIn, useBrowser } from '../support/app/browser.ts';
import { CRASH_API_KEY } from '../support/processes/killable-server.ts';
import { prepareWorld } from './support/world.ts';

/** More than three heartbeats, in real time. */
const OPEN_MS = 65_000;

describe.skipIf(SKIPPED)('the dashboard of a running server', () => {
  const browser = useBrowser();

  test('stays live for a minute without a disconnect', async () => {
    const world = await prepareWorld('dashboard');
    await world.start();
    const page = await browser.open(`${world.server.url}/#/submissions`);
    const opened: string[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/v1/events')) opened.push(request.url());
    });
    await signIn(page, CRASH_API_KEY);
    await page.getByText('Live', { exact: true }).waitFor();
    const disconnected = page.getByText('Disconnected').waitFor({ timeout: OPEN_MS });
    await expect(disconnected, 'the page must not say that it is disconnected').rejects.toThrow(
      'Timeout',
    );
    expect(opened).toHaveLength(1);
    await world.expectSurvived();
  });
});
