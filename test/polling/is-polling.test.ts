import { expect, test } from 'vitest';
import { MINUTE_MS, openWatcher, pending } from '../support/virtual-time/virtual-watcher.ts';

test('a poll loop runs from its start to its stop, unless a poll is more than a minute overdue', async () => {
  const world = openWatcher({ respond: () => pending });
  expect(world.monitor.notPolling()).toEqual([]);
  world.track(['a']);
  await world.clock.advance(5_000);
  expect(world.monitor.notPolling()).toEqual([]);
  // Its timers are due and do not fire.
  world.clock.skip(10 * MINUTE_MS);
  expect(world.monitor.notPolling()).toEqual(['default']);
  await world.clock.advance(2 * MINUTE_MS);
  expect(world.monitor.notPolling()).toEqual([]);
  await world.monitor.stop(0);
  expect(world.monitor.notPolling()).toEqual(['default']);
});

test('a poll loop also runs while its upstream does not respond', async () => {
  const world = openWatcher({ respond: () => new Promise(() => undefined) });
  world.track(['a', 'b']);
  for (let minute = 0; minute < 30; minute += 1) {
    await world.clock.advance(MINUTE_MS);
    expect(world.monitor.notPolling()).toEqual([]);
  }
});
