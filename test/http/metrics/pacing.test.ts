import { register } from 'prom-client';
import { expect, it, onTestFinished, vi } from 'vitest';
import { call, post } from '../../support/http-calls.ts';
import { ledgerThatLearned } from '../../support/learned.ts';
import { scrape } from '../../support/metrics.ts';
import { openApp } from '../../support/running-app.ts';
import { tempFolder } from '../../support/temp-folder.ts';

async function open(database = ledgerThatLearned()) {
  const app = await openApp({ database });
  onTestFinished(() => app.close());
  const samples = async (upstream: string) =>
    Object.fromEntries(
      (await scrape(app.url)).text.split('\n').flatMap((line): [string, number][] => {
        const [, name, of, value] = /^dawatch_pacing_(\w+)\{upstream="(\w+)"\} (\S+)$/.exec(line) ?? [];
        return name !== undefined && of === upstream ? [[name, Number(value)]] : [];
      }),
    );
  return { ...app, close: () => app.close(), samples };
}

it('says what /v1/pacing says, in seconds, ratios and counts', async () => {
  const app = await open();
  const idle = {
    upstream_up: 1,
    tracked_submissions: 0,
    in_line_submissions: 0,
    scout_submissions: 0,
    disorder_ratio: 0,
    budget_requests: 5_000,
    budget_window_seconds: 1,
    budget_used_requests: 0,
    concurrent_requests_limit: 64,
    in_flight_requests: 0,
    next_request_held: 0,
  };
  const before = Date.now() / 1_000;
  const {
    next_block_from_timestamp_seconds: from,
    next_block_until_timestamp_seconds: until,
    ...known
  } = await app.samples('default');
  expect(known).toEqual({
    ...idle,
    clock_used: 1,
    cohorts_used: 1,
    clock_period_seconds: 20,
    least_age_seconds: 39.5,
    group_size_submissions: 3,
  });
  expect(until).toBeGreaterThan(before);
  expect(until).toBeLessThan(before + 25);
  expect(Number(until) - Number(from)).toBeLessThan(2);
  expect(await app.samples('other')).toEqual({ ...idle, clock_used: 0, cohorts_used: 0, group_size_submissions: 0 });
});

it('is asked for anew by every scrape, and a value that is known no more is gone', async () => {
  const app = await open();
  await post(app.url, { submission_id: 'of-an-outage', upstream: 'other' });
  await vi.waitFor(async () => {
    const { next_request_timestamp_seconds: at, ...seen } = await app.samples('other');
    expect(seen).toMatchObject({ upstream_up: 0, tracked_submissions: 1, in_line_submissions: 1 });
    expect(Math.abs(Number(at) - Date.now() / 1_000)).toBeLessThan(10);
  });
  await call(app.url, '/v1/submissions/of-an-outage', { method: 'DELETE' });
  await vi.waitFor(async () => {
    const seen = await app.samples('other');
    expect(seen).toMatchObject({ tracked_submissions: 0 });
    expect(seen).not.toHaveProperty('next_request_timestamp_seconds');
  });
});

it('is of each server by itself, and nothing of it stays when that is closed', async () => {
  const learned = await open();
  const fresh = await open(`${tempFolder()}/dawatch.db`);
  expect(await learned.samples('default')).toHaveProperty('clock_period_seconds', 20);
  expect(await fresh.samples('default')).not.toHaveProperty('clock_period_seconds');
  await learned.close();
  await expect(scrape(learned.url)).rejects.toThrow('ECONNREFUSED');
  expect((await scrape(fresh.url)).status).toBe(200);
  // Nor does any of it in what all servers of the process share.
  expect(register.getMetricsAsArray()).toEqual([]);
});
