import { randomUUID } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { type Clock, iso, systemClock } from '../../src/lib/clock.ts';
import { startSandbox } from '../../src/sandbox/server.ts';
import { call, pathOf, post } from '../support/app/http-calls.ts';
import { openApp } from '../support/app/running-app.ts';
import { tempFolder } from '../support/temp-folder.ts';

async function openWorld() {
  const sandbox = await startSandbox({ options: { speed: 200 } });
  onTestFinished(() => sandbox.close());
  const database = `${tempFolder()}/dawatch.db`;
  let app = await openApp({ database, upstreamUrl: sandbox.url });
  onTestFinished(() => app.close());
  return {
    url: () => app.url,
    async restart(laterMs = 0) {
      await app.close();
      const clock: Clock = {
        now: () => systemClock.now() + laterMs,
        elapsed: () => systemClock.elapsed(),
        after: (delayMs, run) => systemClock.after(delayMs, run),
      };
      app = await openApp({ database, upstreamUrl: sandbox.url, clock });
    },
    async finalize(count: number) {
      const ids = Array.from({ length: count }, () => sandbox.model.submit('data', Date.now()));
      await post(app.url, { submission_ids: ids });
      for (const id of ids) await call(app.url, `${pathOf(id)}/wait?timeout_s=240`);
    },
    overview: async (query = '') => JSON.parse((await call(app.url, `/v1/overview${query}`)).text),
  };
}

const NOTHING = {
  ...{ tracking: 0, pending: 0, failing: 0, finalized: 0, failed: 0 },
  ...{ unknown: 0, rejected: 0, expired: 0, cancelled: 0 },
};

it('starts with counts of 0, sixty minutes, and null for unknown values', async () => {
  const { overview } = await openWorld();
  const { at, steps, ...rest } = await overview();
  const total = {
    finalized: 0,
    time_to_finality_s: null,
    detection_lag_s: null,
    requests_per_submission: null,
  };
  expect(rest).toEqual({
    submissions: NOTHING,
    range: '1h',
    total,
    upstreams: ['default', 'other'].map((name) => ({ name, state: 'up' })),
    deliveries: { waiting: 0, failing: 0, dead: 0, oldest_waiting_at: null },
    workers: null,
  });
  const minutes = steps.map((step: { at: string }) => Date.parse(step.at));
  expect(minutes).toHaveLength(60);
  expect(minutes.at(-1)).toBe(Math.floor(Date.parse(at) / 60_000) * 60_000);
  expect(minutes.at(0)).toBe(minutes.at(-1) - 59 * 60_000);
  expect(steps[0]).toEqual({ at: iso(minutes[0]), ...total });
});

it('shows finalized submissions with time to finality, lag and cost', async () => {
  const { finalize, overview } = await openWorld();
  await finalize(1);
  // Nothing is learned that an estimate could be based on.
  expect((await overview()).total.detection_lag_s).toBeNull();
  // Those that are found final by one commit have no estimate yet, either.
  await finalize(11);
  await finalize(1);
  const { submissions, total } = await overview();
  expect(submissions).toEqual({ ...NOTHING, finalized: 13 });
  const { time_to_finality_s: took, detection_lag_s: lag, ...counts } = total;
  expect(counts.finalized).toBe(13);
  expect(took.p99).toBeGreaterThanOrEqual(took.p50);
  expect(lag.p50).toBeGreaterThan(0);
  // No lag exceeds the time to finality of its submission.
  expect(lag.p99).toBeLessThanOrEqual(took.p99);
});

it('shows the same after a restart, and as one step of each longer range', async () => {
  const { finalize, overview, restart } = await openWorld();
  await finalize(12);
  const { total } = await overview();
  await restart();
  expect((await overview()).total).toEqual(total);
  await finalize(1);
  expect((await overview()).total.finalized).toBe(13);
  for (const [range, count] of Object.entries({
    '15m': 15,
    '24h': 24,
    '7d': 168,
    '30d': 30,
    '90d': 90,
  })) {
    const { steps, ...others } = await overview(`?range=${range}`);
    expect([others.range, steps.length, others.total.finalized]).toEqual([range, count, 13]);
    const sum = steps.reduce((all: number, step: { finalized: number }) => all + step.finalized, 0);
    expect(sum, range).toBe(13);
  }
  await restart(3_600_000);
  expect((await overview()).total.finalized).toBe(0);
  expect((await overview('?range=24h')).total.finalized).toBe(13);
});

it('counts open and cancelled submissions', async () => {
  const { overview, url } = await openWorld();
  const ids = Array.from({ length: 12 }, () => `lost-${randomUUID()}`);
  for (const submission_id of ids) await post(url(), { submission_id, upstream: 'other' });
  expect((await overview()).submissions).toEqual({ ...NOTHING, tracking: 12 });
  await call(url(), pathOf(ids[0] ?? ''), { method: 'DELETE' });
  expect((await overview()).submissions).toEqual({ ...NOTHING, tracking: 11, cancelled: 1 });
});
