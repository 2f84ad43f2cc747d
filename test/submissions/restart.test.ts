import { describe, expect, it } from 'vitest';
import { context, observation } from '../support/ledger/domain.ts';
import { openLedger, trackRequest, trackRequests } from '../support/ledger/ledger-file.ts';

const ALL = { after: 0, limit: 1_000 };

describe('after a restart', () => {
  it('watched submissions are listed with the data that the scheduler needs', () => {
    const ledger = openLedger();
    ledger.upstream('other');
    ledger.track([...trackRequests(4), trackRequest('x', { upstream: 'other' })], 7);
    ledger.record(
      [observation('pending', 20, 's1'), observation('not_found', 30, 's2')],
      context(),
    );
    ledger.record([observation('finalized', 40, 's3')], context({ recheck: true }));
    ledger.track(trackRequests(3, 'done'), 50);
    ledger.record(
      [observation('finalized', 60, 'done0'), observation('rejected', 60, 'done1')],
      context(),
    );
    ledger.cancel(['done2'], 60);
    ledger.close();
    const again = openLedger({ file: ledger.file });
    expect(again.submissions.listWatched('default', ALL)).toEqual({
      next: null,
      watched: [
        { submissionId: 's0', trackedAt: 7, seen: false, polledAt: null, finalizedAt: null },
        { submissionId: 's1', trackedAt: 7, seen: true, polledAt: 20, finalizedAt: null },
        { submissionId: 's2', trackedAt: 7, seen: false, polledAt: 30, finalizedAt: null },
        { submissionId: 's3', trackedAt: 7, seen: true, polledAt: 40, finalizedAt: 40 },
      ],
    });
    expect(
      again.submissions.listWatched('other', ALL).watched.map(({ submissionId }) => submissionId),
    ).toEqual(['x']);
    expect(again.submissions.watchedCounts()).toEqual(
      new Map([
        ['default', 4],
        ['other', 1],
      ]),
    );
  });

  it('an upstream keeps its state, its pause, its polling time and its snapshot', () => {
    const ledger = openLedger();
    const none = { reason: null, pausedUntil: null, pollingUntil: null, snapshot: null };
    const fresh = { state: 'up', outSince: null, ...none };
    expect(ledger.upstream('default')).toEqual(fresh);
    ledger.upstreams.setPolling('default', 90, '{}');
    ledger.upstreams.setPause('default', 99);
    const record = { state: 'unauthorized', outSince: 95 } as const;
    const change = { event: 'upstream.unauthorized', reason: 'HTTP 401', lastedMs: 0 } as const;
    ledger.recordUpstream({ upstream: 'default', at: 95, ...change, record });
    ledger.close();
    expect(openLedger({ file: ledger.file }).upstream('default')).toEqual({
      ...record,
      reason: 'HTTP 401',
      pausedUntil: 99,
      pollingUntil: 90,
      snapshot: '{}',
    });
  });

  it('the id that the upstream has shown is that of its newest finalized submission', () => {
    const ledger = openLedger();
    ledger.upstream('other');
    ledger.track([trackRequest('a'), trackRequest('b'), trackRequest('c'), trackRequest('d')], 0);
    ledger.track([trackRequest('e', { upstream: 'other' })], 0);
    expect(ledger.submissions.findShownId('default')).toBeUndefined();
    ledger.record([observation('finalized', 1, 'a'), observation('finalized', 1, 'b')], context());
    ledger.record([observation('error', 1, 'c'), observation('finalized', 1, 'e')], context());
    expect([
      ledger.submissions.findShownId('default'),
      ledger.submissions.findShownId('other'),
      ledger.submissions.findShownId('none'),
    ]).toEqual(['b', 'e', undefined]);
  });
});
