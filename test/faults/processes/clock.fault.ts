import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sleep } from '../../support/processes/killable-server.ts';
import { prepareWorld } from '../support/world.ts';

const HOUR_S = 3_600;
const SHIFTS_H = [5, -5, 0, -30, 0];

test('the clock jumps by hours both ways, at run time and between starts: nothing ends or stops, and a clock that is set forward counts at once', async () => {
  // A receiver that checks the timestamp correctly refuses signatures while the clock is wrong.
  const world = await prepareWorld('clock', { receiver: { toleranceS: 100 * HOUR_S } });
  const file = join(world.folder, 'shift');
  const shift = (hours: number) => writeFileSync(file, String(hours * HOUR_S * 1_000));
  shift(0);
  const how = {
    nodeOptions: ['--import', join(import.meta.dirname, '../support/shifted-clock.mjs')],
    env: { SHIFT_FILE: file },
  };
  await world.start(how);
  for (const hours of SHIFTS_H) {
    shift(hours);
    await sleep(500);
    const before = Date.now() + hours * HOUR_S * 1_000;
    const [id = ''] = await world.track(50);
    const trackedAt = Date.parse((await world.server.client.get(id)).tracked_at);
    if (hours === 5) expect(Math.abs(trackedAt - before)).toBeLessThan(60_000);
  }
  for (const hours of [5, 0]) {
    await world.track(50);
    await world.server.kill();
    shift(hours);
    await world.start(how);
  }
  await world.track(50);
  await world.expectSurvived();
});
