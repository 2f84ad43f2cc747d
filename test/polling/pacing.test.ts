import { expect, it } from 'vitest';
import type { PacingDescription } from '../../src/pacing/index.ts';
import { call, post } from '../support/app/http-calls.ts';
import { appForTest } from '../support/app/running-app.ts';
import { describing, learnedBy } from '../support/virtual-time/pacing.ts';

const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);

async function open(description?: (now: number) => PacingDescription, lagPrice = 2) {
  const policy = description && (() => describing(description));
  const app = await appForTest({
    upstream: { lag_price: lagPrice },
    ...(policy && { policy }),
  });
  const pacing = async () => {
    const { status, text } = await call(app.url, '/v1/pacing');
    expect(status, text).toBe(200);
    return JSON.parse(text);
  };
  return { url: app.url, pacing };
}

it('shows the learned distribution and polls of each upstream', async () => {
  const { at, upstreams } = await (await open(learnedBy)).pacing();
  const [first] = upstreams;
  expect(first).toEqual({
    upstream: 'default',
    chain: null,
    state: 'up',
    reason: null,
    paused_until: null,
    tracked: 0,
    lag_price: 1,
    mode: 'slots',
    slot: { period_ms: 20_000, next_event_at: TIME, empty_share: 0.03 },
    observed: 200,
    curve: expect.arrayContaining([{ after_ms: 30_000, probability: 0.25 }]),
    polls_ms: [42_000, 60_000],
    last_hour: { finalized: 0, requests_per_submission: null, mean_lag_s: null },
    budget: { requests: 5_000, per_ms: 1_000, used: 0, concurrency: 64, in_flight: 0 },
    recent_polls: [],
  });
  expect(first.curve).toHaveLength(61);
  expect(Math.abs(Date.parse(first.slot.next_event_at) - Date.parse(at) - 10_000)).toBeLessThan(
    5_000,
  );
});

it('shows an outage', async () => {
  const app = await open(undefined, 1_000);
  await post(app.url, { submission_id: 'of-an-outage', upstream: 'other' });
  await expect
    .poll(async () => (await app.pacing()).upstreams[1])
    .toMatchObject({ state: 'down', tracked: 1 });
});
