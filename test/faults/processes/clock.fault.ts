import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sleep } from '../../support/processes/killable-server.ts';
import { prepareWorld } from '../support/world.ts';

const HOUR_S = 3_600;
const SHIFTS_H = [5, -5, 0, -30, 0];

async function prepareShiftedWorld(name: string, options: Parameters<typeof prepareWorld>[1] = {}) {
  // A receiver that checks the timestamp correctly refuses signatures while the clock is wrong.
  const world = await prepareWorld(name, { receiver: { toleranceS: 100 * HOUR_S }, ...options });
  const file = join(world.folder, 'shift');
  const shift = (hours: number) => writeFileSync(file, String(hours * HOUR_S * 1_000));
  shift(0);
  const how = {
    nodeOptions: ['--import', join(import.meta.dirname, '../support/shifted-clock.mjs')],
    env: { SHIFT_FILE: file },
  };
  return { ...world, shift, start: () => world.start(how), restart: () => world.server.start(how) };
}

test('the clock jumps by hours both ways at run time: nothing ends or stops, and a clock that is set forward counts at once', async () => {
  const world = await prepareShiftedWorld('clock, running');
  await world.start();
  for (const hours of SHIFTS_H) {
    world.shift(hours);
    await sleep(500);
    const before = Date.now() + hours * HOUR_S * 1_000;
    const [id = ''] = await world.track(50);
    const trackedAt = Date.parse((await world.server.client.get(id)).tracked_at);
    if (hours === 5) expect(Math.abs(trackedAt - before)).toBeLessThan(60_000);
  }
  await world.expectSurvived();
});

test('the clock was hours off in one process and is correct in the next: open submissions become final', async () => {
  const world = await prepareShiftedWorld('clock, between starts', { sandbox: { speed: 20 } });
  await world.start();
  for (const hours of [5, 0, -5, 0]) {
    await world.track(50);
    await world.server.kill();
    world.shift(hours);
    world.restart();
    await world.server.listening();
  }
  await world.track(50);
  await world.expectSurvived();
});
