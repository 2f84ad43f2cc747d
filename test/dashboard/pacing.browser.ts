import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  plotData,
  probabilityAt,
  quantileMs,
} from '../../src/dashboard/page/pacing/pacing-page.js';
import type { PacingDescription } from '../../src/pacing/index.ts';
import { goTo, SKIPPED, useBrowser } from '../support/app/browser.ts';
import { post } from '../support/app/http-calls.ts';
import { API_KEY, openApp, useApp } from '../support/app/running-app.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { describing, learnedBy } from '../support/virtual-time/pacing.ts';

const app = useApp({ policy: () => describing(learnedBy) });
const browser = useBrowser();

async function open(url = app.url): Promise<Page> {
  const page = await browser.openAs(API_KEY, url);
  await goTo(page, 'pacing');
  await page.getByRole('heading', { name: 'Pacing' }).waitFor();
  return page;
}

describe.skipIf(SKIPPED)('the pacing page', () => {
  it('draws the learned distribution of each upstream, and describes it in words', async () => {
    const page = await open();
    const section = page.getByRole('region', { name: 'default', exact: true }).first();
    await section.locator('canvas').waitFor();
    await section.getByText('50 % are final within 40.0 s, 90 % are final within 56.0 s').waitFor();
    await section.getByText('First polls after 42.0 s, 1 min').waitFor();
    await section.getByText('every 20.0 s, 3 % empty').waitFor();
    await section.getByText('too few submissions').waitFor();
    expect(await page.locator('canvas').count()).toBe(2);
  });

  it('counts the newest polls, and says now instead of a time that has passed', async () => {
    const page = await browser.openAs(API_KEY, app.url);
    await page.route('**/v1/pacing', async (route) => {
      const { at, upstreams } = await (await route.fetch()).json();
      const slot = { ...upstreams[0].slot, next_event_at: at };
      const recent_polls = ['pending', 'not_found', 'finalized'].map((result) => ({ result }));
      await route.fulfill({ json: { at, upstreams: [{ ...upstreams[0], slot, recent_polls }] } });
    });
    await goTo(page, 'pacing');
    await page.getByText('now', { exact: true }).waitFor();
    await page.getByText('3 polls: 2 not final yet, 1 found final', { exact: true }).waitFor();
  });

  it('states that nothing is learned', async () => {
    const nothing = (now: number): PacingDescription => ({
      ...learnedBy(now),
      mode: 'age',
      slot: null,
      observed: 0,
      curve: [],
      pollsMs: [],
    });
    const { url, close } = await openApp({
      database: join(tempFolder(), 'ledger.db'),
      policy: () => describing(nothing),
    });
    onTestFinished(close);
    await post(url, { submission_id: 'a' });
    const page = await open(url);
    await page.getByText('No curve yet').first().waitFor();
    await page.getByText('Few data yet: this is an assumption.').first().waitFor();
    await page.getByText('nothing yet: default estimate').first().waitFor();
  });
});

describe('the curve', () => {
  const curve = [
    { after_ms: 10_000, probability: 0 },
    { after_ms: 20_000, probability: 0.5 },
    { after_ms: 20_000, probability: 0.75 },
    { after_ms: 1e12, probability: 1 },
  ];

  it('is interpolated between its points, including jumps', () => {
    expect([0, 15_000, 20_000].map((ms) => probabilityAt(curve, ms))).toEqual([0, 0.25, 0.5]);
    expect(probabilityAt(curve, 2e12)).toBe(1);
    expect([0.25, 0.6, 0.75].map((share) => quantileMs(curve, share))).toEqual([
      15_000, 20_000, 20_000,
    ]);
    expect(quantileMs(curve.slice(0, 3), 0.9)).toBeNull();
  });

  it('ends where nearly all submissions are final, with the polls in its range', () => {
    const { at, final, polls } = plotData(
      [
        ...curve.slice(0, 3),
        { after_ms: 30_000, probability: 0.99 },
        { after_ms: 1e12, probability: 1 },
      ],
      [15_000, 25_000, 1e11],
    );
    expect(at.at(-1)).toBeLessThan(40);
    expect(at).toEqual(at.toSorted((a, b) => a - b));
    expect(final).toHaveLength(at.length);
    expect(polls.filter((share) => share !== null)).toEqual([0.25, 0.87]);
  });

  it('without a point is not drawn', () => {
    expect(plotData([], [1])).toEqual({ at: [], final: [], polls: [] });
  });
});
