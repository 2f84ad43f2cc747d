import { describe, expect, it } from 'vitest';
import { STATUSES } from '../../src/submissions/submission.ts';
import { context, observation } from '../support/ledger/domain.ts';
import {
  type Ledger,
  openLedger,
  rawConnection,
  trackRequest,
  trackRequests,
} from '../support/ledger/ledger-file.ts';

const counts = (ledger: Ledger) =>
  Object.fromEntries(
    Object.entries(ledger.stats.counts().submissions).filter(([, count]) => count > 0),
  );

describe('the number of submissions by status', () => {
  it('equals a full count after every commit', () => {
    const ledger = openLedger();
    expect(Object.keys(ledger.stats.counts().submissions).toSorted()).toEqual(
      [...STATUSES].toSorted(),
    );
    expect(counts(ledger)).toEqual({});
    ledger.track(trackRequests(5), 0);
    ledger.track(trackRequests(5), 0);
    expect(counts(ledger)).toEqual({ tracking: 5 });
    ledger.record([observation('pending', 1, 's0'), observation('finalized', 1, 's1')], context());
    ledger.record([observation('pending', 2, 's0'), observation('finalized', 2, 's1')], context());
    ledger.record([observation('error', 3, 's0'), observation('rejected', 3, 's2')], context());
    ledger.cancel(['s3'], 4);
    ledger.cancel(['s3'], 5);
    const expected = { failing: 1, finalized: 1, rejected: 1, cancelled: 1, tracking: 1 };
    expect(counts(ledger)).toEqual(expected);
    const rows = rawConnection(ledger.file).prepare(
      'SELECT status, count(*) FROM submissions GROUP BY status',
    );
    expect(Object.fromEntries(rows.raw().all() as [string, number][])).toEqual(expected);
  });

  it('ignores transactions that are rolled back', () => {
    const ledger = openLedger();
    ledger.track(trackRequests(2), 0);
    expect(counts(ledger)).toEqual({ tracking: 2 });
    const impossible = [trackRequest('new'), trackRequest('other', { upstream: 'nowhere' })];
    expect(() => ledger.track(impossible, 0)).toThrow('FOREIGN KEY');
    expect(counts(ledger)).toEqual({ tracking: 2 });
  });
});

describe('the final status of submissions', () => {
  it('is reported once for each after the commit, and not again for a correction', () => {
    const ledger = openLedger();
    const ended: string[] = [];
    ledger.stats.onEnded((status) => ended.push(status));
    ledger.track(trackRequests(4), 0);
    ledger.record(
      [observation('finalized', 1, 's0'), observation('rejected', 1, 's1')],
      context({ recheck: true }),
    );
    ledger.record(
      [observation('pending', 2, 's0'), observation('error', 2, 's2')],
      context({ recheck: true }),
    );
    ledger.cancel(['s3'], 3);
    ledger.cancel(['s3'], 4);
    expect(ended).toEqual(['finalized', 'rejected', 'cancelled']);
  });
});

it('a replayed delivery waits since the replay, not since its event', () => {
  const ledger = openLedger();
  ledger.routes.setChannels([
    { name: 'ops', subscriptions: [{ types: ['*'], metadata: null }], gatherMs: 0 },
  ]);
  ledger.track(trackRequests(2), 0);
  for (const id of ['s0', 's1']) ledger.cancel([id], 10);
  ledger.deliveries.endUnconfigured('channel:ops', 20);
  ledger.deliveries.replay(1, 5_000);
  expect(ledger.stats.counts().deliveries.oldestWaitingAt).toBe(5_000);
  ledger.deliveries.replayDead('channel:ops', 4_000);
  expect(ledger.stats.counts().deliveries.oldestWaitingAt).toBe(4_000);
});
