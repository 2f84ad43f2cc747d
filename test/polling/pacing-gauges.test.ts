import { expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/lib/system-clock.ts';
import type { PacingDescription } from '../../src/pacing/index.ts';
import { call, post } from '../support/app/http-calls.ts';
import { scrape } from '../support/app/metrics.ts';
import { openApp } from '../support/app/running-app.ts';
import { serve } from '../support/servers/upstream-server.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { describing, learnedBy } from '../support/virtual-time/pacing.ts';

const PATIENCE_MS = 15_000;

async function open(
  description?: (now: number) => PacingDescription,
  setting: { upstreamUrl?: string } = {},
) {
  const policy = description && (() => describing(description));
  const database = `${tempFolder()}/dawatch.db`;
  const app = await openApp({ database, ...setting, ...(policy && { policy }) });
  onTestFinished(() => app.close());
  const samples = async (upstream: string) =>
    Object.fromEntries(
      (await scrape(app.url)).text.split('\n').flatMap((line): [string, number][] => {
        const [, name, of, value] =
          /^dawatch_pacing_(\w+)\{upstream="(\w+)"\} (\S+)$/.exec(line) ?? [];
        return name !== undefined && of === upstream ? [[name, Number(value)]] : [];
      }),
    );
  return { ...app, close: () => app.close(), samples };
}

const IDLE = {
  upstream_up: 1,
  tracked_submissions: 0,
  budget_requests: 5_000,
  budget_window_seconds: 1,
  budget_used_requests: 0,
  concurrent_requests_limit: 64,
  in_flight_requests: 0,
  next_request_delayed: 0,
};

it('equals /v1/pacing in seconds, ratios and counts', async () => {
  const app = await open(learnedBy);
  const before = systemClock.now() / 1_000;
  const { next_event_timestamp_seconds: next, ...known } = await app.samples('default');
  expect(known).toEqual({
    ...IDLE,
    slots_known: 1,
    slot_period_seconds: 20,
    slot_empty_ratio: 0.03,
    serial_senders: 3,
    observed_submissions: 200,
    lag_price_requests: 1,
    requests_per_submission: 1.5,
    lag_seconds: 0.8,
    lower_bound_requests_per_submission: 1.4,
    lower_bound_lag_seconds: 0.7,
    every_five_seconds_requests_per_submission: 8.5,
    every_five_seconds_lag_seconds: 2.5,
  });
  expect(Math.abs(Number(next) - before - 10)).toBeLessThan(5);
});

it('has no sample for unknown values', async () => {
  const unknown = { requests: Number.POSITIVE_INFINITY, lagS: Number.NaN };
  const app = await open((now) => ({
    ...learnedBy(now),
    mode: 'age',
    slot: null,
    senders: null,
    observed: 0,
    current: null,
    lowerBound: unknown,
    everyFiveSeconds: unknown,
  }));
  const idle = { ...IDLE, slots_known: 0, observed_submissions: 0, lag_price_requests: 1 };
  expect(await app.samples('default')).toEqual(idle);
});

it('is updated by every scrape, and removes values no longer known', async () => {
  const { url } = await serve((_request, response) =>
    response.end('{"state":"Pending","error":null,"data":{}}'),
  );
  const app = await open(undefined, { upstreamUrl: url });
  await post(app.url, { submission_id: 'pending' });
  await post(app.url, { submission_id: 'of-an-outage', upstream: 'other' });
  await vi.waitFor(async () => {
    expect(await app.samples('default')).toHaveProperty('next_request_timestamp_seconds');
    expect(await app.samples('other')).toMatchObject({ upstream_up: 0, tracked_submissions: 1 });
  }, PATIENCE_MS);
  for (const id of ['pending', 'of-an-outage'])
    await call(app.url, `/v1/submissions/${id}`, { method: 'DELETE' });
  await vi.waitFor(async () => {
    const seen = await app.samples('default');
    expect(seen).toMatchObject({ upstream_up: 1, tracked_submissions: 0 });
    expect(seen).not.toHaveProperty('next_request_timestamp_seconds');
    const { next_request_timestamp_seconds: at, ...rest } = await app.samples('other');
    expect(rest).toMatchObject({ upstream_up: 0, tracked_submissions: 0 });
    expect(Math.abs(Number(at) - systemClock.now() / 1_000), 'probes').toBeLessThan(10);
  }, PATIENCE_MS);
});
