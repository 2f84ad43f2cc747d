import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RequestBudget } from '../../src/polling/poll-queues.ts';
import { openWatcher } from '../support/virtual-time/virtual-watcher.ts';

it('a request that times out counts until a window after its end', async () => {
  const timedOut = { kind: 'failure', reason: 'timeout', detail: 'no response' } as const;
  const world = openWatcher({
    respond: () => new Promise((resolve) => world.clock.after(10_000, () => resolve(timedOut))),
    scheduler: { budget: { requests: 2, perMs: 60_000, concurrency: 2 } },
  });
  world.track(['a', 'b', 'c', 'd']);
  await world.clock.advance(10_000 + 60_000);
  expect(world.polls).toHaveLength(2);
  await world.clock.advance(1_000);
  expect(world.polls).toHaveLength(4);
});

/** Sends as many requests as are available; returns their number. */
function sendAll(budget: RequestBudget, now: number): number {
  const count = budget.available(now);
  for (let i = 0; i < count; i++) budget.send();
  return count;
}

const settings = fc.record({
  requests: fc.integer({ min: 1, max: 8 }),
  perMs: fc.integer({ min: 1, max: 500 }),
  concurrency: fc.integer({ min: 1, max: 10 }),
});
/** The time until the next attempt, and the time until each of its requests completes. */
const attempts = fc.array(
  fc.record({
    afterMs: fc.double({ min: 0, max: 400, noNaN: true }),
    responseMs: fc.double({ min: 0, max: 300, noNaN: true }),
  }),
  { maxLength: 60, size: 'max' },
);

describe('any pattern of requests', () => {
  it('never exceeds the limit in any window, wherever between sending and completion the upstream counts, although the clock rounds down to milliseconds', () => {
    fc.assert(
      fc.property(
        settings,
        attempts,
        fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })),
        (given, tries, where) => {
          const budget = new RequestBudget(given);
          const counted: number[] = [];
          let inFlight: number[] = [];
          let now = 0;
          for (const { afterMs, responseMs } of tries) {
            const availableAt = budget.availableAt();
            // Half of the attempts come as soon as the budget allows.
            now =
              afterMs < 200 && Number.isFinite(availableAt)
                ? Math.max(now, availableAt)
                : now + afterMs;
            for (const at of inFlight.filter((at) => at <= now).sort((a, b) => a - b))
              budget.complete(Math.floor(at));
            inFlight = inFlight.filter((at) => at > now);
            const sent = sendAll(budget, Math.floor(now));
            expect(inFlight.length + sent).toBeLessThanOrEqual(given.concurrency);
            for (let i = 0; i < sent; i++) {
              counted.push(now + responseMs * (where.next().value ?? 0));
              inFlight.push(now + responseMs);
            }
          }
          counted.sort((a, b) => a - b);
          for (const [index, at] of counted.entries()) {
            const beyond = counted[index + given.requests];
            if (beyond !== undefined)
              expect(beyond - at).toBeGreaterThanOrEqual(given.perMs - 1e-6);
          }
        },
      ),
      { numRuns: 400 },
    );
  });
});
