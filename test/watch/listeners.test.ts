import { describe, expect, it } from 'vitest';
import type { WatcherListener } from '../../src/watch/listeners.ts';
import { databaseDown, finalized, MINUTE_MS, openWatcher, pending } from '../support/virtual-watcher.ts';

const KINDS = ['recorded', 'finalized', 'upstream', 'writeFailed'] as const;

/** A listener that throws at everything, between two that take note of what they are told. */
function openWithThrowing(
  kinds: readonly (keyof WatcherListener)[],
  answer: Parameters<typeof openWatcher>[0]['answer'],
) {
  const told: string[] = [];
  const faults: unknown[] = [];
  const noting = (name: string): WatcherListener => ({
    ...Object.fromEntries(KINDS.map((kind) => [kind, () => told.push(`${name} ${kind}`)])),
    listenerFailed: (error) => faults.push(error),
  });
  const throwing = Object.fromEntries(
    kinds.map((kind) => [
      kind,
      () => {
        throw new Error(`fault in ${kind}`);
      },
    ]),
  );
  const world = openWatcher({ answer, listeners: [noting('first'), throwing, noting('last')] });
  return { world, told, faults };
}

describe('a listener that throws', () => {
  it.each(['finalized', 'recorded'] as const)(
    'in %s does not cause observations to be recorded again: each poll counts once, each event is reported once',
    async (kind) => {
      const { world, faults } = openWithThrowing([kind], () => finalized);
      world.track(['a', 'b', 'c']);
      await world.clock.advance(10 * MINUTE_MS);
      for (const id of ['a', 'b', 'c']) {
        expect(world.get(id)).toMatchObject({ status: 'finalized', polls: 1, watched: false });
        expect(world.statuses(id)).toEqual(['tracking', 'finalized']);
      }
      expect(world.asked).toHaveLength(3);
      expect(world.ledger.outbox.after(0, 100)).toHaveLength(3);
      expect(world.monitor.health().ledgerWritable).toBe(true);
      expect(faults.map(String)).toContain(`Error: fault in ${kind}`);
    },
  );

  it('does not affect the listeners before and after it', async () => {
    let answer = pending;
    const { world, told } = openWithThrowing(KINDS, () => answer);
    world.track(['a', 'b']);
    await world.clock.advance(1_000);
    answer = databaseDown;
    await world.clock.advance(5 * MINUTE_MS);
    answer = finalized;
    await world.clock.advance(5 * MINUTE_MS);
    for (const kind of ['recorded', 'finalized', 'upstream']) {
      const first = told.filter((line) => line === `first ${kind}`);
      expect(first.length).toBeGreaterThan(1);
      expect(told.filter((line) => line === `last ${kind}`)).toHaveLength(first.length);
    }
  });

  it('stops neither polls, nor on-demand polls, nor write retries', async () => {
    const { world, told } = openWithThrowing(KINDS, () => finalized);
    const record = world.ledger.record.bind(world.ledger);
    world.ledger.record = () => {
      throw new Error('not now');
    };
    world.track(['a']);
    const onDemand = world.monitor.pollOnDemand('default', 'b');
    await world.clock.advance(1_000);
    world.ledger.record = record;
    await world.clock.advance(5 * MINUTE_MS);
    expect(await onDemand).toMatchObject({ kind: 'observed' });
    expect(world.get('a').status).toBe('finalized');
    expect(told).toContain('last writeFailed');
  });

  it('does not receive its own errors: an error in listenerFailed is dropped', async () => {
    const world = openWatcher({
      answer: () => finalized,
      listeners: [
        {
          finalized: () => {
            throw new Error('one');
          },
          listenerFailed: () => {
            throw new Error('two');
          },
        },
      ],
    });
    world.track(['a']);
    await world.clock.advance(MINUTE_MS);
    expect(world.get('a')).toMatchObject({ status: 'finalized', polls: 1 });
  });
});
