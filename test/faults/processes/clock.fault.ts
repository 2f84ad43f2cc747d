import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { until } from '../../support/until.ts';
import { prepareWorld } from '../support/world.ts';

const HOUR_S = 3_600;
const SHIFTS_H = [5, -5, 0, -30, 0];
/** Steps of up to a second are ignored. */
const STEP_IGNORED_MS = 1_000;

test('the clock jumps by hours both ways, at run time and between starts: nothing ends or stops, and a clock that is set forward counts at once', async () => {
  // A receiver that checks the timestamp correctly refuses signatures while the clock is wrong.
  const world = await prepareWorld('clock', { receiver: { toleranceS: 100 * HOUR_S } });
  const file = join(world.folder, 'shift');
  const shift = (hours: number) => writeFileSync(file, String(hours * HOUR_S * 1_000));
  const readShift = (name: string) => readFileSync(name, 'utf8');
  shift(0);
  const how = {
    nodeOptions: ['--import', join(import.meta.dirname, '../support/shifted-clock.mjs')],
    env: { SHIFT_FILE: file },
  };
  await world.start(how);
  for (const hours of SHIFTS_H) {
    shift(hours);
    await until(
      () => existsSync(`${file}.applied`) && readShift(`${file}.applied`) === readShift(file),
    );
    const from = Date.now();
    const [id = ''] = await world.track(50);
    const to = Date.now();
    const trackedAt = Date.parse((await world.server.client.get(id)).tracked_at);
    const shiftedMs = hours * HOUR_S * 1_000;
    // A clock that is set back slows down.
    if (hours > 0) {
      expect(trackedAt).toBeGreaterThan(from + shiftedMs - STEP_IGNORED_MS);
      expect(trackedAt).toBeLessThan(to + shiftedMs + STEP_IGNORED_MS);
    }
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
