import { describe, expect, it } from 'vitest';
import type { AlertCondition } from '../../../src/domain/notifications/alert.ts';
import type { Ledger } from '../../../src/ledger/ledger.ts';
import { context, observation } from '../../support/ledger/domain.ts';
import { openLedger, trackRequest } from '../../support/ledger/ledger-file.ts';

const down: AlertCondition = { rule: 'upstream_down', subject: 'default', summary: 'it is out', count: 3 };
const stuck: AlertCondition = { rule: 'stuck', subject: 'default', summary: '1 is stuck', count: 1 };
const times = (now: number) => ({ now, remindAfterMs: 100 });

describe('reported alerts', () => {
  it('a condition is reported once when it begins and once when it ends, with its last summary', () => {
    const ledger = openLedger();
    const report = (conditions: AlertCondition[], now: number) =>
      ledger.alerts
        .reconcile(conditions, times(now))
        .map(({ type, alert }) => [type, alert.rule, alert.count, alert.since]);
    expect(report([down], 10)).toEqual([['alert.raised', 'upstream_down', 3, 10]]);
    expect(report([{ ...down, count: 4 }], 20)).toEqual([]);
    expect(report([{ ...down, count: 5 }, stuck], 30)).toEqual([['alert.raised', 'stuck', 1, 30]]);
    expect(report([stuck], 40)).toEqual([['alert.resolved', 'upstream_down', 5, 10]]);
    expect(report([stuck], 50)).toEqual([]);
    expect(report([down, stuck], 60)).toEqual([['alert.raised', 'upstream_down', 3, 60]]);
    expect(ledger.outbox.after(0, 100).map(({ type }) => type)).toEqual([
      'alert.raised',
      'alert.raised',
      'alert.resolved',
      'alert.raised',
    ]);
  });

  it('a condition that persists is reported again after each interval', () => {
    const ledger = openLedger();
    const reported = [0, 50, 99, 100, 150, 199, 200].map((now) =>
      ledger.alerts.reconcile([down], times(now)).map(({ type }) => type),
    );
    expect(reported).toEqual([['alert.raised'], [], [], ['alert.reminder'], [], [], ['alert.reminder']]);
  });

  it('a restart reports nothing twice', () => {
    const first = openLedger();
    first.alerts.reconcile([down], times(10));
    first.close();
    const second = openLedger({ file: first.file });
    expect(second.alerts.reconcile([down], times(20))).toEqual([]);
    expect(second.alerts.reconcile([], times(30))).toMatchObject([{ type: 'alert.resolved', alert: { since: 10 } }]);
  });
});

const NO_OBJECTIVES = { objectives: new Map(), now: 0 };
const facts = (ledger: Ledger, failuresSince: number) =>
  ledger.alerts.facts({
    upstreams: ['default', 'other'],
    failuresSince,
    deadSince: 0,
    waitingBefore: 1_000,
    ...NO_OBJECTIVES,
  });

describe('the facts', () => {
  it('cover configured upstreams only, and list the open alerts', () => {
    const ledger = openLedger();
    ledger.upstream('forgotten');
    ledger.alerts.reconcile([down], times(10));
    const { upstreams, open } = facts(ledger, 0);
    expect(upstreams.map(({ name }) => name)).toEqual(['default']);
    expect(open).toEqual([{ rule: 'upstream_down', subject: 'default' }]);
  });

  it('contain how each upstream with an objective meets it', () => {
    const ledger = openLedger();
    ledger.track([trackRequest('late')], 0);
    const objective = { target: 0.99, withinMs: 1_000 };
    ledger.objectives.count({ upstream: 'default', objective, now: 2_000, limit: 10 });
    const query = { upstreams: [], failuresSince: 0, deadSince: 0, waitingBefore: 0, now: 2_000 };
    expect(ledger.alerts.facts({ ...query, objectives: new Map([['default', objective]]) }).objectives).toMatchObject([
      { upstream: 'default', windows: { '5m': { good: 0, bad: 1 } } },
    ]);
  });

  it('exclude short waits, old dead letters, and dead letters of alerts', () => {
    const ledger = openLedger();
    ledger.fanOut.setChannels([{ name: 'ops', subscriptions: [{ types: ['*'], metadata: null }], gatherMs: 0 }]);
    ledger.track([trackRequest('s')], 0);
    ledger.record([observation('finalized', 10, 's')], context());
    ledger.alerts.reconcile([down], times(20));
    const query = { upstreams: [], failuresSince: 0, deadSince: 30, waitingBefore: 15, ...NO_OBJECTIVES };
    expect(ledger.alerts.facts(query)).toMatchObject({ waiting: 1, dead: [] });
    ledger.deliveries.expireUnconfigured('channel:ops', 1_000, 30);
    expect(ledger.alerts.facts(query)).toMatchObject({ waiting: 0, dead: [{ receiver: 'channel:ops', count: 1 }] });
    expect(ledger.alerts.facts({ ...query, deadSince: 31 })).toMatchObject({ dead: [] });
  });

  it('count watched, stuck, failing and failed submissions by upstream, without recovered ones', () => {
    const ledger = openLedger();
    ledger.upstream('other');
    ledger.track(
      ['a', 'b', 'c'].map((id) => trackRequest(id, { stuckAt: 15 })),
      0,
    );
    ledger.record(
      [observation('error', 10, 'a'), observation('error', 12, 'b'), observation('pending', 20, 'c')],
      context(),
    );
    ledger.record([observation('error', 20, 'a'), observation('finalized', 21, 'b')], context());
    expect(facts(ledger, 0).upstreams).toEqual([
      { name: 'default', state: 'closed', outSince: null, watched: 0, stuck: 2, failing: 1, failed: 0 },
      { name: 'other', state: 'closed', outSince: null, watched: 0, stuck: 0, failing: 0, failed: 0 },
    ]);
    // No failure since then: the Error of the submission that is still failing is older, and the other one is finalized.
    expect(facts(ledger, 11).upstreams[0]?.failing).toBe(0);
    const record = { state: 'down', outSince: 30, outageMs: 0 } as const;
    ledger.recordUpstream({ upstream: 'default', at: 30, event: 'upstream.down', record });
    expect(facts(ledger, 0).upstreams[0]).toMatchObject({ state: 'down', outSince: 30, watched: 2 });
  });

  it('count waiting and dead deliveries by receiver, callbacks as one, without disabled webhooks', () => {
    const ledger = openLedger();
    ledger.webhooks.ensureCallbacks(() => ({ secret: 'x', publicKey: null }), 0);
    const webhook = { url: 'https://a', types: ['*'], metadata: null, description: '', signature: 'v1' as const };
    const on = ledger.webhooks.create({ ...webhook, enabled: true }, { secret: 'x', publicKey: null }, 0).id;
    const off = ledger.webhooks.create({ ...webhook, enabled: false }, { secret: 'x', publicKey: null }, 0).id;
    ledger.track(
      ['1', '2'].map((id) => trackRequest(id, { callbackUrl: `https://c${id}.example` })),
      0,
    );
    ledger.record([observation('finalized', 10, '1'), observation('finalized', 10, '2')], context());
    expect(facts(ledger, 0)).toMatchObject({ waiting: 4, dead: [] });
    for (const destination of [`webhook:${on}`, 'callback:https://c1.example', 'callback:https://c2.example'])
      ledger.deliveries.expireUnconfigured(destination, 1_000, 20);
    expect(facts(ledger, 0)).toMatchObject({
      waiting: 0,
      dead: expect.arrayContaining([
        { receiver: 'webhook:callbacks', count: 2 },
        { receiver: `webhook:${on}`, count: 2 },
      ]),
      disabled: [],
    });
    expect(JSON.stringify(facts(ledger, 0).dead)).not.toContain(off);
  });
});
