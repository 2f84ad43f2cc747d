import { expect, it, onTestFinished, vi } from 'vitest';
import { call, post } from '../support/http-calls.ts';
import { ledgerThatLearned } from '../support/learned.ts';
import { openApp } from '../support/running-app.ts';

const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);

async function open() {
  const app = await openApp({ database: ledgerThatLearned() });
  onTestFinished(() => app.close());
  return { url: app.url, pacing: async () => JSON.parse((await call(app.url, '/v1/pacing')).text) };
}

it('shows what is known of each upstream, also by a process before this one', async () => {
  const app = await open();
  const { at, upstreams } = await app.pacing();
  const budget = { requests: 5_000, per_ms: 1_000, used: 0, concurrency: 64, in_flight: 0 };
  const idle = { state: 'closed', tracked: 0, in_line: 0, scouts: 0, disorder: 0, budget, next: null };
  expect(upstreams).toEqual([
    {
      ...idle,
      upstream: 'default',
      mode: 'cohorts',
      clock: { period_ms: 20_000, next_from: TIME, next_until: TIME },
      least_age_ms: 39_500,
      group_size: 3,
    },
    { ...idle, upstream: 'other', mode: 'by_age', clock: null, least_age_ms: null, group_size: 0 },
  ]);
  const { next_from, next_until } = upstreams[0].clock;
  expect(Date.parse(next_until) - Date.parse(next_from)).toBeLessThan(2_000);
  expect(Date.parse(next_until)).toBeGreaterThan(Date.parse(at));
  expect(Date.parse(next_until)).toBeLessThan(Date.parse(at) + 22_000);
});

it('says whom the next request is about, and why', async () => {
  const app = await open();
  await post(app.url, { submission_id: 'of-an-outage', upstream: 'other' });
  await vi.waitFor(async () => {
    const [, other] = (await app.pacing()).upstreams;
    expect(other).toMatchObject({ state: 'down', tracked: 1, in_line: 1, scouts: 1 });
    expect(other.next).toEqual({ submission_id: 'of-an-outage', at: TIME, reason: 'probe', held_by: null });
  });
});
