import { expect, it } from 'vitest';
import type { HttpResult } from '../../src/lib/http-call.ts';
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
