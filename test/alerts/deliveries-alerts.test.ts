import { describe, expect, it } from 'vitest';
import { MAX_MUTES, type NewMute } from '../../src/alerts/alerts-store.ts';
import type { AlertCondition } from '../../src/alerts/rules.ts';
import { withAlerts } from '../support/ledger/alerts-ledger.ts';
import { context, observation } from '../support/ledger/domain.ts';
import { openLedger as openPlain, trackRequest } from '../support/ledger/ledger-file.ts';

const openLedger = (options?: Parameters<typeof openPlain>[0]) => withAlerts(openPlain(options));
type AlertLedger = ReturnType<typeof openLedger>;

const down: AlertCondition = {
  rule: 'upstream_down',
  subject: 'default',
  summary: 'it is out',
  count: 3,
};
const stuck: AlertCondition = {
  rule: 'stuck',
  subject: 'default',
  summary: '1 is stuck',
  count: 1,
};
const operator = 'on call';
const mute = (until: number): NewMute => ({
  rule: null,
  subject: null,
  until,
  reason: '',
});

it('an alert has the newest summary and count, and is reported when it begins and when it ends', () => {
  const ledger = openLedger();
  const report = (conditions: AlertCondition[], now: number) =>
    ledger.alerts
      .reconcile(conditions, now)
      .map(({ type, alert }) => [type, alert.rule, alert.count, alert.since]);
  expect(report([down], 10)).toEqual([['alert.raised', 'upstream_down', 3, 10]]);
  expect(report([{ ...down, summary: 'it is still out', count: 5 }, stuck], 20)).toEqual([
    ['alert.raised', 'stuck', 1, 20],
  ]);
  const { alerts } = ledger.alerts.list({ state: 'firing', limit: 10, now: 20 });
  expect(alerts.map(({ summary }) => summary).toSorted()).toEqual([
    '1 is stuck',
    'it is still out',
  ]);
  expect(report([stuck], 30)).toEqual([['alert.resolved', 'upstream_down', 5, 10]]);
  expect(report([stuck], 40)).toEqual([]);
});

/**
 * Runs one check of the alerts per time, and returns the types of the events: in parentheses if
 * they were not sent.
 */
function check(ledger: AlertLedger, conditions: AlertCondition[], ...moments: number[]): string[] {
  return moments.flatMap((now) =>
    ledger.alerts.reconcile(conditions, now).map(({ type, alert }) => {
      const name = type.replace('alert.', '');
      return alert.muted ? `(${name})` : name;
    }),
  );
}

/** The types of the events that a channel for all alerts received. */
function sentBy(ledger: AlertLedger): string[] {
  const { deliveries } = ledger.deliveries.list({ destination: 'channel:ops', limit: 100 });
  return deliveries.map(({ eventType }) => eventType.replace('alert.', '')).toReversed();
}

function openWithChannel(file?: string): AlertLedger {
  const ledger = openLedger(file === undefined ? {} : { file });
  ledger.routes.setChannels([
    { name: 'ops', subscriptions: [{ types: ['*'], metadata: null }], gatherMs: 0 },
  ]);
  return ledger;
}

describe('a muted alert', () => {
  it('that begins during the mute is recorded, and sent at its end', () => {
    const ledger = openWithChannel();
    ledger.alerts.addMute(mute(50), operator, 5);
    expect(check(ledger, [down], 10, 20, 49)).toEqual(['(raised)']);
    expect(sentBy(ledger)).toEqual([]);
    expect(check(ledger, [down], 50, 60)).toEqual(['raised']);
    expect(ledger.events.after(0, 10)).toMatchObject([
      { type: 'alert.raised', alert: { since: 10, muted: true } },
      { type: 'alert.raised', alert: { since: 10 } },
    ]);
    expect(check(ledger, [], 70)).toEqual(['resolved']);
    expect(sentBy(ledger)).toEqual(['raised', 'resolved']);
  });

  it('that begins and ends during the mute is never sent', () => {
    const ledger = openWithChannel();
    ledger.alerts.addMute(mute(50), operator, 5);
    expect([...check(ledger, [down], 10), ...check(ledger, [], 20, 60)]).toEqual([
      '(raised)',
      '(resolved)',
    ]);
    expect(sentBy(ledger)).toEqual([]);
    const [alert] = ledger.alerts.list({ state: 'resolved', limit: 10, now: 60 }).alerts;
    expect(alert).toMatchObject({ since: 10, resolvedAt: 20, sentAt: null, summary: 'it is out' });
  });

  it('that was sent before is sent at its end, also during the mute', () => {
    const ledger = openWithChannel();
    check(ledger, [down, stuck], 0);
    ledger.alerts.addMute(mute(250), operator, 50);
    expect(check(ledger, [stuck], 210)).toEqual(['resolved']);
    expect(check(ledger, [stuck], 250, 300)).toEqual([]);
  });

  it.each<[string, Partial<NewMute>, boolean]>([
    ['all alerts', {}, true],
    ['its rule and subject', { rule: 'upstream_down', subject: 'default' }, true],
    ['its rule and another subject', { rule: 'upstream_down', subject: 'other' }, false],
    ['another rule', { rule: 'stuck' }, false],
    ['a time before', { until: 10 }, false],
  ])('is covered by a mute of %s: %j', (_name, fields, isCovered) => {
    const ledger = openWithChannel();
    ledger.alerts.addMute({ ...mute(50), ...fields }, operator, 5);
    expect(check(ledger, [down], 10)).toEqual([isCovered ? '(raised)' : 'raised']);
    expect(ledger.alerts.list({ state: 'all', limit: 1, now: 10 }).alerts[0]?.mutedUntil).toBe(
      isCovered ? 50 : null,
    );
  });

  it('is sent if the mute is ended early, and only once across restarts', () => {
    const first = openWithChannel();
    const made = first.alerts.addMute(mute(1_000), operator, 5);
    check(first, [down], 10);
    first.close();
    const second = openWithChannel(first.file);
    expect(check(second, [down], 20)).toEqual([]);
    expect(second.alerts.mutes(20)).toEqual([made]);
    expect(second.alerts.deleteMute(made?.id ?? 0, 30)).toEqual(made);
    expect(second.alerts.deleteMute(made?.id ?? 0, 30)).toBeUndefined();
    expect(check(second, [down], 40)).toEqual(['raised']);
    second.close();
    expect(check(openWithChannel(first.file), [down], 50)).toEqual([]);
  });
});

it('mutes that have ended are not listed, and make room for new ones', () => {
  const ledger = openLedger();
  for (let count = 0; count < MAX_MUTES; count += 1)
    expect(ledger.alerts.addMute(mute(50), operator, 0)).toBeDefined();
  expect(ledger.alerts.addMute(mute(50), operator, 49)).toBeUndefined();
  expect(ledger.alerts.addMute(mute(60), operator, 50)).toBeDefined();
  expect(ledger.alerts.mutes(55)).toHaveLength(1);
  expect(ledger.alerts.mutes(60)).toEqual([]);
});

it('resolved alerts are listed page by page, for 30 days', () => {
  const ledger = openLedger();
  for (let now = 0; now < 50; now += 10) check(ledger, now % 20 === 0 ? [down] : [], now);
  const firing = ledger.alerts.list({ state: 'firing', limit: 10, now: 50 });
  expect(firing.alerts.map(({ since }) => since)).toEqual([40]);
  const first = ledger.alerts.list({ state: 'all', limit: 2, now: 50 });
  const second = ledger.alerts.list({
    state: 'all',
    limit: 2,
    before: first.nextBefore ?? 0,
    now: 50,
  });
  expect([...first.alerts, ...second.alerts].map(({ since }) => since)).toEqual([40, 20, 0]);
  expect(second.nextBefore).toBeNull();
  check(ledger, [], 30 * 86_400_000 + 20);
  expect(
    ledger.alerts.list({ state: 'resolved', limit: 10, now: 0 }).alerts.map(({ since }) => since),
  ).toEqual([40, 20]);
});

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const facts = (ledger: AlertLedger, failuresSince: number) =>
  ledger.alerts.facts(['default', 'other'], failuresSince + 10 * MINUTE_MS);

describe('the facts', () => {
  it('cover configured upstreams only, and list the open alerts', () => {
    const ledger = openLedger();
    ledger.upstream('forgotten');
    ledger.alerts.reconcile([down], 10);
    const { upstreams, open } = facts(ledger, 0);
    expect(upstreams.map(({ name }) => name)).toEqual(['default']);
    expect(open).toEqual([{ rule: 'upstream_down', subject: 'default' }]);
  });

  it('exclude short waits, old dead letters, and dead letters of alerts', () => {
    const ledger = openLedger();
    ledger.routes.setChannels([
      { name: 'ops', subscriptions: [{ types: ['*'], metadata: null }], gatherMs: 0 },
    ]);
    ledger.track([trackRequest('s')], 0);
    ledger.record([observation('finalized', 10, 's')], context());
    ledger.alerts.reconcile([down], 20);
    const factsAt = (now: number) => ledger.alerts.facts([], now);
    expect(factsAt(MINUTE_MS + 15)).toMatchObject({
      receivers: [{ destination: 'channel:ops', late: 1, waiting: 2 }],
      dead: [],
    });
    ledger.deliveries.endUnconfigured('channel:ops', 30);
    expect(factsAt(DAY_MS + 30)).toMatchObject({
      receivers: [{ late: 0, waiting: 0 }],
      dead: [{ receiver: 'channel:ops', description: null, count: 1 }],
    });
    expect(factsAt(DAY_MS + 31)).toMatchObject({ dead: [] });
  });

  it('count watched, stuck, failing and failed submissions by upstream, without recovered ones', () => {
    const ledger = openLedger();
    ledger.upstream('other');
    ledger.track(
      ['a', 'b', 'c'].map((id) => trackRequest(id, { stuckAt: 15 })),
      0,
    );
    ledger.record(
      [
        observation('error', 10, 'a'),
        observation('error', 12, 'b'),
        observation('pending', 20, 'c'),
      ],
      context(),
    );
    ledger.record([observation('error', 20, 'a'), observation('finalized', 21, 'b')], context());
    const none = { state: 'up', outSince: null, reason: null, watched: 0 };
    const quiet = {
      ...none,
      stuck: 0,
      oddState: null,
      contradicted: 0,
      failing: 0,
      failed: 0,
    };
    expect(facts(ledger, 0).upstreams).toEqual([
      { ...quiet, name: 'default', stuck: 2, failing: 1 },
      { ...quiet, name: 'other' },
    ]);
    // No failure since then: the Error of the submission that is still failing is older, and the
    // other one is finalized.
    expect(facts(ledger, 11).upstreams[0]?.failing).toBe(0);
    const record = { state: 'down', outSince: 30 } as const;
    const change = { event: 'upstream.down', reason: 'HTTP 503', lastedMs: 0, record } as const;
    ledger.recordUpstream({ upstream: 'default', at: 30, ...change });
    expect(facts(ledger, 0).upstreams[0]).toMatchObject({
      state: 'down',
      outSince: 30,
      watched: 2,
    });
  });

  it('count waiting and dead deliveries by receiver, callbacks as one, without disabled webhooks', () => {
    const ledger = openLedger();
    ledger.webhooks.ensureCallbacks(() => 'x', 0);
    const webhook = {
      url: 'https://a',
      types: ['*'],
      metadata: null,
      description: '',
    };
    const on = ledger.webhooks.create(
      { ...webhook, description: 'billing', enabled: true },
      'x',
      0,
    ).id;
    const off = ledger.webhooks.create({ ...webhook, enabled: false }, 'x', 0).id;
    ledger.track(
      ['1', '2'].map((id) => trackRequest(id, { callbackUrl: `https://c${id}.example` })),
      0,
    );
    ledger.record(
      [observation('finalized', 10, '1'), observation('finalized', 10, '2')],
      context(),
    );
    const lateOf = ({ receivers }: ReturnType<typeof facts>) =>
      receivers.map(({ destination, late }) => [destination, late]);
    expect(lateOf(facts(ledger, 0))).toEqual([
      ['webhook:callbacks', 2],
      [`webhook:${on}`, 2],
    ]);
    expect(facts(ledger, 0)).toMatchObject({ dead: [] });
    for (const destination of [
      `webhook:${on}`,
      'callback:https://c1.example',
      'callback:https://c2.example',
    ])
      ledger.deliveries.endUnconfigured(destination, 20);
    expect(lateOf(facts(ledger, 0)).map(([, late]) => late)).toEqual([0, 0]);
    expect(facts(ledger, 0)).toMatchObject({
      dead: expect.arrayContaining([
        { receiver: 'webhook:callbacks', description: null, count: 2 },
        { receiver: `webhook:${on}`, description: 'billing', count: 2 },
      ]),
      disabled: [],
    });
    expect(JSON.stringify(facts(ledger, 0).dead)).not.toContain(off);
  });
});
