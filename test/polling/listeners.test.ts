import { describe, expect, it } from 'vitest';
import type { WatcherListener } from '../../src/polling/listeners.ts';
import { finalized, MINUTE_MS, openWatcher } from '../support/virtual-time/virtual-watcher.ts';

const KINDS = ['recorded', 'finalized', 'upstream', 'writeFailed'] as const;

/** A listener whose methods throw, between two that record their calls. */
function openWithThrowing(
  kinds: readonly (keyof WatcherListener)[],
  sendResponse: Parameters<typeof openWatcher>[0]['respond'],
) {
  const calls: string[] = [];
  const faults: unknown[] = [];
  const noting = (name: string): WatcherListener => ({
    ...Object.fromEntries(KINDS.map((kind) => [kind, () => calls.push(`${name} ${kind}`)])),
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
  const world = openWatcher({
    respond: sendResponse,
    listeners: [noting('first'), throwing, noting('last')],
  });
  return { world, calls, faults };
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
      expect(world.polls).toHaveLength(3);
      expect(world.ledger.events.after(0, 100)).toHaveLength(3);
      expect(world.monitor.health().ledgerWritable).toBe(true);
      expect(faults.map(String)).toContain(`Error: fault in ${kind}`);
    },
  );

  it('stops neither polls, nor on-demand polls, nor write retries', async () => {
    const { world, calls } = openWithThrowing(KINDS, () => finalized);
    const record = world.ledger.store.record.bind(world.ledger.store);
    world.ledger.store.record = () => {
      throw new Error('not now');
    };
    world.track(['a']);
    const onDemand = world.monitor.pollOnDemand('default', 'b');
    await world.clock.advance(1_000);
    world.ledger.store.record = record;
    await world.clock.advance(5 * MINUTE_MS);
    expect(await onDemand).toMatchObject({ kind: 'observed' });
    expect(world.get('a').status).toBe('finalized');
    expect(calls).toContain('last writeFailed');
  });
});
