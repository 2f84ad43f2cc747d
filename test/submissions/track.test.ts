import { describe, expect, it } from 'vitest';
import { context, historyOf, observation } from '../support/ledger/domain.ts';
import { openLedger, outboxOf, trackRequest } from '../support/ledger/ledger-file.ts';

describe('tracking', () => {
  it('stores the request unchanged, and begins a history', () => {
    const ledger = openLedger();
    const metadata = {
      order: 'ü-17',
      nested: { list: [1, 2.5, null, true, '\u0000 "\\ \u2028'] },
      ['__proto__']: 1,
    };
    const request = trackRequest('s', {
      deadlineAt: 900,
      graceEndsAt: 300,
      stuckAt: 200,
      metadata,
    });
    const result = ledger.track([request], 100);
    const expected = {
      ...request,
      status: 'tracking',
      watched: true,
      stuck: false,
      version: 1,
      polls: 0,
      polledAt: null,
      notFoundSince: null,
      trackedAt: 100,
      finalizedAt: null,
      finalityAt: null,
      finalitySource: null,
      upstreamState: null,
      error: null,
      envelope: null,
      dataHash: null,
      chain: null,
      chainReason: null,
    };
    expect(result).toEqual({
      kind: 'tracked',
      submissions: [{ submission: expected, effect: 'accepted' }],
    });
    expect(ledger.submissions.get('s')).toEqual(expected);
    expect(JSON.stringify(ledger.submissions.get('s')?.metadata)).toBe(JSON.stringify(metadata));
    const empty = {
      previousStatus: null,
      upstreamState: null,
      error: null,
      chain: null,
      chainReason: null,
      envelope: null,
      changes: null,
    };
    expect(historyOf(ledger, 's')).toEqual([
      { seq: 1, version: 1, at: 100, status: 'tracking', ...empty },
    ]);
    expect(outboxOf(ledger.file)).toEqual([]);
  });

  it('a second request for the same id changes nothing', () => {
    const ledger = openLedger();
    ledger.track([trackRequest('s', { metadata: { first: true } })], 100);
    ledger.record([observation('pending', 150, 's')], context());
    const before = ledger.submissions.get('s');
    const again = ledger.track(
      [trackRequest('s', { metadata: { first: false }, deadlineAt: 1 }), trackRequest('t')],
      200,
    );
    expect(again).toMatchObject({
      kind: 'tracked',
      submissions: [{ effect: 'already_tracked', submission: before }, { effect: 'accepted' }],
    });
    expect(ledger.submissions.get('s')).toEqual(before);
    expect(historyOf(ledger, 's')).toHaveLength(2);
  });

  it('several requests in one transaction are accepted or refused one by one, in order', () => {
    const ledger = openLedger();
    ledger.upstream('other');
    ledger.track([trackRequest('taken', { upstream: 'other' })], 0);
    const groups = [
      [trackRequest('a'), trackRequest('b')],
      [trackRequest('c'), trackRequest('taken')],
      [trackRequest('b'), trackRequest('d')],
      [trackRequest('e', { deadlineAt: 1 })],
      [trackRequest('f')],
    ];
    const results = ledger.store.track(groups, 1);
    const summaries = results.map((result) =>
      result.kind === 'tracked' ? result.submissions.map(({ effect }) => effect) : result.kind,
    );
    expect(summaries).toEqual([
      ['accepted', 'accepted'],
      'conflict',
      ['already_tracked', 'accepted'],
      'late',
      ['accepted'],
    ]);
    const ids = ledger.search
      .list({ limit: 10 })
      .submissions.map(({ submissionId }) => submissionId);
    expect(ids).toEqual(['f', 'd', 'b', 'a', 'taken']);
  });
});

describe('cancelling', () => {
  it('ends an open submission with one event', () => {
    const ledger = openLedger();
    ledger.track([trackRequest('s')], 0);
    ledger.record([observation('pending', 10, 's')], context());
    const [cancelled] = ledger.cancel(['s'], 20);
    expect(cancelled).toMatchObject({ status: 'cancelled', watched: false, polls: 1 });
    expect(cancelled).toEqual(ledger.submissions.get('s'));
    expect(ledger.cancel(['s'], 30)).toMatchObject([{ status: 'cancelled' }]);
    expect(historyOf(ledger, 's').map(({ at, status }) => [at, status])).toEqual([
      [0, 'tracking'],
      [10, 'pending'],
      [20, 'cancelled'],
    ]);
    expect(outboxOf(ledger.file).map(({ type }) => type)).toEqual(['submission.cancelled']);
  });

  it('leaves a final submission unchanged, and returns undefined for an unknown id', () => {
    const ledger = openLedger();
    ledger.track([trackRequest('s')], 0);
    ledger.record([observation('finalized', 10, 's')], context({ recheck: true }));
    expect(ledger.cancel(['s'], 20)).toMatchObject([{ status: 'finalized' }]);
    expect(ledger.submissions.get('s')?.watched, 'its recheck is still due').toBe(true);
    expect(ledger.cancel(['t'], 20)).toEqual([undefined]);
  });
});
