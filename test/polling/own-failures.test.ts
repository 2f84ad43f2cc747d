import { describe, expect, it } from 'vitest';
import type { HttpResult } from '../../src/lib/http-call.ts';
import {
  databaseDown,
  finalized,
  MINUTE_MS,
  openWatcher,
  pending,
  recordNotFound,
  response,
  START_MS,
} from '../support/virtual-time/virtual-watcher.ts';

const DATABASE_ERROR = response(500, { error: 'Database error' });

describe('one submission that always fails does not affect others', () => {
  it.each<[string, number, string]>([
    ['a 403 of the service', 403, '{"error":"not yours"}'],
    ['a malformed response', 200, '{"stat'],
    ['a page of a firewall', 403, '<html>blocked</html>'],
  ])('with %s', async (_what, status, body) => {
    const world = openWatcher({
      respond: (id) =>
        id === 'bad' ? response(status, body) : id === 'good' ? pending : recordNotFound,
    });
    world.track(['bad']);
    await world.clock.advance(5 * MINUTE_MS);
    expect(world.polls.length).toBeGreaterThan(8);
    world.track(['good']);
    await world.clock.advance(5_000);
    expect(world.get('good').status).toBe('pending');
    expect(world.turns).toEqual([]);
  });
});

it('an outage ends although nothing is tracked any more', async () => {
  let current: HttpResult = pending;
  const world = openWatcher({ respond: () => current });
  world.track(['a']);
  await world.clock.advance(1_000);
  current = databaseDown;
  await world.clock.advance(5 * MINUTE_MS);
  world.cancel(['a']);
  current = pending;
  await world.clock.advance(MINUTE_MS);
  expect(world.turns).toMatchObject([{ event: 'upstream.down' }, { event: 'upstream.up' }]);
});

describe('an outage is noticed with a single submission', () => {
  it.each([
    ['that it never returned', 'a', databaseDown],
    ['that does not find a submission which it returned', 'shown', recordNotFound],
  ])('%s', async (_what, id, failure) => {
    let current: HttpResult = pending;
    const world = openWatcher({ respond: () => current });
    if (id === 'shown') world.track([id]);
    await world.clock.advance(1_000);
    current = failure;
    if (id !== 'shown') world.track([id]);
    await world.clock.advance(5 * MINUTE_MS);
    expect(world.turns).toMatchObject([{ event: 'upstream.down' }]);
    current = finalized;
    await world.clock.advance(MINUTE_MS);
    expect(world.turns).toMatchObject([{ event: 'upstream.down' }, { event: 'upstream.up' }]);
  });
});

describe('the time limits', () => {
  const badFails = (others: HttpResult) => (id: string) =>
    id.startsWith('bad') ? DATABASE_ERROR : others;

  it.each<[string, HttpResult]>([
    ['finds nothing else', recordNotFound],
    ['returns everything else', pending],
  ])('of a submission that always fails pass at an upstream that %s', async (_what, others) => {
    const world = openWatcher({ respond: badFails(others) });
    const deadlineAt = START_MS + 45_000;
    world.track(['bad'], { deadlineAt });
    await world.clock.advance(46_000 + MINUTE_MS);
    expect(world.get('bad').status).toBe('expired');
    expect(world.turns).toEqual([]);
  });

  it('of a submission that fails since it was returned pass, too, if the upstream finds others', async () => {
    let bad: HttpResult = pending;
    const world = openWatcher({ respond: (id) => (id === 'bad' ? bad : finalized) });
    world.track(['other']);
    await world.clock.advance(1_000);
    world.track(['bad'], { deadlineAt: START_MS + 45 * MINUTE_MS });
    await world.clock.advance(1_000);
    bad = recordNotFound;
    await world.clock.advance(60 * MINUTE_MS);
    expect(world.get('bad').status).toBe('expired');
    expect(world.turns).toEqual([]);
  });
});
