import { join } from 'node:path';
import { expect, it } from 'vitest';
import { MACHINE, SystemClock } from '../../src/lib/clock.ts';
import type { HttpResult } from '../../src/lib/http-call.ts';
import { eventPacing } from '../../src/pacing/index.ts';
import { post } from '../support/app/http-calls.ts';
import { reading, scrape } from '../support/app/metrics.ts';
import { appForTest } from '../support/app/running-app.ts';
import { tempFolder } from '../support/temp-folder.ts';
import {
  finalized,
  MINUTE_MS,
  openWatcher,
  pending,
} from '../support/virtual-time/virtual-watcher.ts';

const HOUR_MS = 60 * MINUTE_MS;

it('a step forward does not allow a second budget, because the elapsed part of the window is unknown', async () => {
  const world = openWatcher({
    respond: () => pending,
    scheduler: { budget: { requests: 5, perMs: MINUTE_MS, concurrency: 5 } },
  });
  world.track(Array.from({ length: 40 }, (_, index) => `id-${index}`));
  await world.clock.advance(1_000);
  expect(world.polls).toHaveLength(5);
  world.clock.skip(2 * MINUTE_MS);
  await world.clock.advance(MINUTE_MS - 1_000);
  expect(world.polls).toHaveLength(5);
  await world.clock.advance(2_000);
  expect(world.polls).toHaveLength(10);
});

it('ten open submissions are polled as before after a step of two days, because it is no age', async () => {
  const pollsAfter = async (stepMs: number) => {
    const world = openWatcher({ respond: () => pending, policy: eventPacing({ lagPrice: 1 }) });
    const limitAt = world.clock.now() + 90 * 24 * HOUR_MS;
    const ids = Array.from({ length: 10 }, (_, index) => `id-${index}`);
    world.track(ids, { deadlineAt: limitAt, graceEndsAt: limitAt, stuckAt: limitAt });
    await world.clock.advance(10_000);
    if (stepMs > 0) world.clock.skip(stepMs);
    const from = world.polls.length;
    await world.clock.advance(2 * MINUTE_MS);
    return world.polls.length - from;
  };
  const usual = await pollsAfter(0);
  const afterStep = await pollsAfter(48 * HOUR_MS);
  expect(usual).toBeGreaterThan(20);
  expect(Math.abs(afterStep - usual)).toBeLessThan(usual / 2);
});

it('a server logs and counts steps of more than a minute, and warns at the start if its clock is a day behind its ledger', async () => {
  const database = join(tempFolder(), 'ledger.db');
  let shiftMs = 0;
  const start = async () => {
    const lines: string[] = [];
    const clock = new SystemClock({ ...MACHINE, wall: () => Date.now() + shiftMs });
    const app = await appForTest({ database, clock, onLog: (line) => lines.push(line) });
    const logged = (name: string) =>
      lines.map((line) => JSON.parse(line)).filter(({ event }) => event === name);
    return { app, logged };
  };
  const { app, logged } = await start();
  const counted = async (direction: string) =>
    reading((await scrape(app.url)).text, 'dawatch_clock_steps_total', { direction });
  for (const stepMs of [30_000, -HOUR_MS, 49 * HOUR_MS]) {
    shiftMs += stepMs;
    await scrape(app.url);
  }
  expect(logged('clock.stepped')).toMatchObject([{ step_s: -3_600 }, { step_s: 172_800 }]);
  expect([await counted('forward'), await counted('back')]).toEqual([1, 1]);
  await post(app.url, { submission_id: 'tracked-too-late' });
  await app.close();
  expect(logged('clock.behind')).toEqual([]);
  shiftMs = 0;
  expect((await start()).logged('clock.behind')).toMatchObject([{ level: 'warn' }]);
});

it('submissions in flight at the start of a sleep are polled again, and a late response still counts', async () => {
  const held: ((response: HttpResult) => void)[] = [];
  const world = openWatcher({
    respond: () => new Promise<HttpResult>((resolve) => held.push(resolve)),
  });
  world.track(['a', 'b']);
  await world.clock.advance(1_000);
  world.clock.skip(HOUR_MS);
  held[0]?.(finalized);
  await world.clock.advance(5_000);
  expect(world.get('a').status).toBe('finalized');
  for (const respond of held) respond(finalized);
  await world.clock.advance(5_000);
  expect(world.get('b').status).toBe('finalized');
  expect(world.statuses('a')).toEqual(['tracking', 'finalized']);
});
