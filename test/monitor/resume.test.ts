import { expect, test, vi } from 'vitest';
import { LedgerError } from '../../src/ledger/errors.ts';
import { trackRequest } from '../support/ledger-file.ts';
import { finalized, MINUTE_MS, openMonitor, pending } from '../support/virtual-monitor.ts';

/** More than are taken up in one piece. */
const MANY = 12_000;
const ids = Array.from({ length: MANY }, (_, index) => `id-${index}`);
const tracked = ({ monitor }: ReturnType<typeof openMonitor>) => monitor.pacing()[0]?.tracked ?? 0;

function openLarge(options: Partial<Parameters<typeof openMonitor>[0]> = {}) {
  const world = openMonitor({ answer: () => finalized, ...options });
  const deadlineAt = world.clock.now() + 60 * MINUTE_MS;
  const limits = { deadlineAt, graceEndsAt: deadlineAt, stuckAt: deadlineAt };
  // By nobody who asks about them.
  world.ledger.track(
    ids.map((id) => trackRequest(id, limits)),
    world.clock.now(),
  );
  world.restart();
  return world;
}

test('after a restart asking begins with the oldest, before the newest are taken up', async () => {
  const world = openLarge({ answer: () => pending });
  expect(tracked(world)).toBeLessThan(MANY);
  const asked = world.asked.map(({ submissionId }) => ids.indexOf(submissionId));
  expect(asked).toHaveLength(32);
  expect(Math.max(...asked)).toBeLessThan(tracked(world));
  await world.clock.advance(0);
  expect(tracked(world)).toBe(MANY);
});

test('what is tracked while older ones are taken up is found behind them, and each is known once', async () => {
  let answer = pending;
  const world = openLarge({ answer: () => answer });
  world.track(['new']);
  world.track(['id-11999']);
  expect(world.monitor.pacing()[0]?.description.inLine).toBe(tracked(world));
  await world.clock.advance(0);
  expect(tracked(world)).toBe(MANY + 1);
  answer = finalized;
  await world.clock.advance(10 * MINUTE_MS);
  expect(world.get('new').status).toBe('finalized');
  expect(world.asked.filter(({ submissionId }) => submissionId === 'id-11999')).toHaveLength(1);
});

test('what is cancelled, or asked about out of turn, before it was taken up, is not asked about again', async () => {
  const world = openLarge({ pacer: { budget: { requests: 1_000, perMs: 1_000, concurrency: 1_000 } } });
  world.monitor.cancel('id-11998');
  const asked = world.monitor.ask('default', 'id-11999');
  await world.clock.advance(5 * MINUTE_MS);
  expect((await asked).kind).toBe('answered');
  const of = (id: string) => world.asked.filter(({ submissionId }) => submissionId === id).length;
  expect([of('id-11998'), of('id-11999'), tracked(world)]).toEqual([0, 1, 0]);
});

test('a piece that can not be read is read again, and nothing behind it is forgotten', async () => {
  const failures: unknown[] = [];
  const world = openLarge({ listener: { writeFailed: (error) => failures.push(error) } });
  const read = vi.spyOn(world.ledger, 'watched').mockImplementationOnce(() => {
    throw new LedgerError('corrupt', 'the disk failed');
  });
  await world.clock.advance(0);
  expect([failures.length, tracked(world) < MANY]).toEqual([1, true]);
  await world.clock.advance(10 * MINUTE_MS);
  expect(read).toHaveBeenCalledTimes(3);
  expect(ids.filter((id) => world.get(id).status !== 'finalized')).toEqual([]);
});

test('a stop while older ones are taken up ends it', async () => {
  const world = openLarge();
  const stopped = world.monitor.stop(1_000);
  await world.clock.advance(10 * MINUTE_MS);
  await stopped;
  expect(tracked(world)).toBeLessThan(MANY);
  expect(world.clock.pending).toBe(0);
});
