import { describe, expect, it } from 'vitest';
import { nextCursor, rowFrom } from '../../src/http/typed-server.ts';
import { watchAlerts, withAlerts } from '../support/ledger/alerts-ledger.ts';
import { trackRequests } from '../support/ledger/ledger-file.ts';
import {
  DAY_MS,
  delivered,
  failed,
  openDispatcher,
} from '../support/virtual-time/virtual-dispatcher.ts';

const MINUTE_MS = 60_000;
type AlertLedger = ReturnType<typeof openWatch>['ledger'];

const farFrom = (now: number) => {
  const far = now + 100 * DAY_MS;
  return { deadlineAt: far, graceEndsAt: far, stuckAt: far };
};

/** An alert watch over a real ledger, with a channel `ops` for alerts only. */
function openWatch(receive: Parameters<typeof openDispatcher>[0]['receive'] = () => delivered) {
  const world = openDispatcher({ receive, maxBatch: 100 });
  const { clock } = world;
  const ledger = withAlerts(world.ledger);
  ledger.routes.setChannels([
    { name: 'ops', subscriptions: [{ types: ['alert.*'], metadata: null }], gatherMs: 0 },
  ]);
  const errors: unknown[] = [];
  const state = { isWritable: true };
  const watch = watchAlerts({
    store: ledger.alerts,
    clock,
    isLedgerWritable: () => state.isWritable,
    publicUrl: 'https://dawatch.example.com/ops/',
    onFailed: (error) => errors.push(error),
  });
  const messages = () =>
    world.sent
      .filter(({ destination }) => destination === 'channel:ops')
      .flatMap(({ types }) => types);
  /** The newest alerts, the last one first. */
  const alerts = (state: 'firing' | 'all') =>
    ledger.alerts.list({ state, limit: 10, now: clock.now() }).alerts;
  return { ...world, ledger, watch, messages, alerts, state, errors };
}

/** A watch with a webhook that has only failed, for eleven minutes. */
async function openFailing(url = 'https://a.example') {
  const world = openWatch((destination) =>
    destination.startsWith('webhook:') ? failed() : delivered,
  );
  const id = world.webhook(url, { types: ['submission.*'] });
  world.finalize('s1');
  await world.clock.advance(11 * MINUTE_MS);
  expect(world.messages()).toEqual(['alert.raised']);
  return { ...world, id };
}

describe('reported alerts', () => {
  it('an outage with 1,000 pending submissions is one message, and one when it is over', async () => {
    const { clock, ledger, turn, messages } = openWatch();
    ledger.track(
      trackRequests(1_000).map((request) => ({ ...request, ...farFrom(clock.now()) })),
      clock.now(),
    );
    turn('down');
    await clock.advance(60_000);
    await clock.advance(3_600_000);
    expect(messages()).toEqual(['alert.raised']);
    turn('up');
    await clock.advance(60_000);
    expect(messages().slice(1)).toEqual(['alert.resolved']);
    const alerts = ledger.events.after(0, 100).filter((event) => 'alert' in event);
    const link = 'https://dawatch.example.com/ops/#/pacing';
    expect(alerts[0]).toMatchObject({
      alert: { rule: 'upstream_down', count: 1_000, id: 1, link },
    });
  });

  it('a ledger that cannot be written is an alert in memory, recorded and sent once it can', async () => {
    const { clock, ledger, watch, messages, state } = openWatch();
    await clock.advance(5_000);
    expect(watch.unrecorded).toBeUndefined();
    state.isWritable = false;
    await clock.advance(5_000);
    const since = clock.now();
    await clock.advance(60_000);
    expect(watch.unrecorded).toMatchObject({ rule: 'ledger_not_writable', since });
    expect(messages()).toEqual([]);
    state.isWritable = true;
    await clock.advance(5_000);
    expect(watch.unrecorded).toBeUndefined();
    expect(messages()).toEqual(['alert.raised']);
    await clock.advance(5_000);
    expect(messages()).toEqual(['alert.raised', 'alert.resolved']);
    expect(ledger.events.after(0, 100)).toMatchObject([
      { alert: { rule: 'ledger_not_writable', since } },
      { alert: { summary: 'The ledger can be written again' } },
    ]);
  });

  it('an alert that SQLite refuses to store shows that the ledger cannot be written', async () => {
    const { clock, ledger, turn, watch, messages, alerts: list, errors } = openWatch();
    turn('down');
    ledger.database.connection.pragma('query_only = 1');
    await clock.advance(10_000);
    expect(errors).toHaveLength(2);
    expect(watch.unrecorded).toMatchObject({ rule: 'ledger_not_writable' });
    ledger.database.connection.pragma('query_only = 0');
    await clock.advance(5_000);
    const rules = list('firing');
    expect(rules.map(({ rule }) => rule)).toEqual(['ledger_not_writable', 'upstream_down']);
    // A page that contains only the alert in memory is followed by all others.
    const page = { state: 'firing', limit: 0, now: clock.now() } as const;
    const { alerts, nextBefore } = ledger.alerts.list(page);
    const before = rowFrom(nextCursor(nextBefore) ?? '');
    expect([alerts, ledger.alerts.list({ ...page, before, limit: 10 }).alerts]).toEqual([
      [],
      rules,
    ]);
    expect(messages()).toEqual(['alert.raised', 'alert.raised']);
  });

  it('a webhook that only fails for ten minutes is named with its newest error, until it succeeds', async () => {
    const state = { result: failed({ error: 'responded with 500' }) };
    const { clock, ledger, messages, alerts, webhook, finalize } = openWatch((destination) =>
      destination.startsWith('webhook:') ? state.result : delivered,
    );
    const id = webhook('https://a.example/T0p-Secret-Path?key=SECRET', { types: ['submission.*'] });
    const since = clock.now();
    finalize('s1');
    await clock.advance(9 * MINUTE_MS);
    state.result = failed({ error: 'responded with 503' });
    expect(messages()).toEqual([]);
    finalize('s2');
    await clock.advance(2 * MINUTE_MS);
    expect(messages()).toEqual(['alert.raised']);
    expect(alerts('all')).toMatchObject([
      {
        ...{ rule: 'webhook_failing', subject: `webhook:${id}`, since, count: 2 },
        summary: `All attempts at the webhook ${id} fail (responded with 503); 2 deliveries wait`,
      },
    ]);
    expect(JSON.stringify(ledger.events.after(0, 100))).not.toMatch(/T0p|SECRET/);
    state.result = delivered;
    finalize('s3');
    await clock.advance(10_000);
    expect(messages()).toEqual(['alert.raised', 'alert.resolved']);
  });

  it('a success within the ten minutes prevents it; all callbacks are one receiver', async () => {
    const { clock, ledger, messages, alerts, webhook, finalize } = openWatch(
      (destination, [outgoing]) =>
        destination === 'channel:ops' || outgoing?.json.includes('"lucky') ? delivered : failed(),
    );
    ledger.webhooks.ensureCallbacks(() => 'whsec_x', clock.now());
    webhook('https://a.example', { types: ['submission.*'] });
    for (const id of ['1', '2', '3']) {
      finalize(`bad${id}`, { callbackUrl: 'https://b.example' });
      await clock.advance(9 * MINUTE_MS);
      finalize(`lucky${id}`, { callbackUrl: 'https://c.example' });
    }
    finalize('bad4', { callbackUrl: 'https://b.example' });
    await clock.advance(9 * MINUTE_MS);
    expect(messages()).toEqual([]);
    await clock.advance(2 * MINUTE_MS);
    expect(
      alerts('firing')
        .map(({ subject }) => subject)
        .toSorted(),
    ).toEqual(['webhook:callbacks', expect.stringMatching(/^webhook:wh_/)]);
    expect(
      alerts('firing')
        .map(({ summary }) => summary)
        .join(),
    ).toContain('All attempts at the webhook callbacks fail (');
  });

  it('a webhook that failed while the clock was ahead is named after ten minutes by the right time', async () => {
    const { clock, ledger, messages, webhook, finalize } = openWatch((destination) =>
      destination.startsWith('webhook:') ? failed() : delivered,
    );
    const id = webhook('https://a.example', { types: ['submission.*'] });
    const ahead = { isDelivered: false, error: 'responded with 500', at: clock.now() + DAY_MS };
    ledger.database.transaction(() => ledger.receivers.record(`webhook:${id}`, ahead));
    finalize('s1');
    await clock.advance(11 * MINUTE_MS);
    expect(messages()).toEqual(['alert.raised']);
  });

  it('an update that repeats the address of a failing webhook leaves its alert', async () => {
    const url = 'https://a.example';
    const { clock, ledger, messages, id } = await openFailing(url);
    ledger.webhooks.update(id, { url, description: 'billing' }, clock.now());
    await clock.advance(10_000);
    expect(messages()).toEqual(['alert.raised']);
  });

  it.each<[string, (ledger: AlertLedger, id: string, now: number) => void]>([
    ['deleted', ({ webhooks }, id, now) => webhooks.delete(id, now)],
    ['disabled', ({ webhooks }, id, now) => webhooks.update(id, { enabled: false }, now)],
  ])('a failing webhook that is %s has no alert', async (_name, change) => {
    const { clock, ledger, messages, id } = await openFailing();
    change(ledger, id, clock.now());
    await clock.advance(10_000);
    expect(messages()).toEqual(['alert.raised', 'alert.resolved']);
    // Failures before do not count.
    ledger.webhooks.update(id, { enabled: true }, clock.now());
    await clock.advance(10_000);
    expect(messages()).toEqual(['alert.raised', 'alert.resolved']);
  });

  it('a channel that only fails is named through the others', async () => {
    const { clock, ledger, messages, alerts, finalize } = openWatch((destination) =>
      destination === 'channel:mail' ? failed({ error: 'the connection was refused' }) : delivered,
    );
    const to = (name: string, types: string[]) => ({
      ...{ name, gatherMs: 0, subscriptions: [{ types, metadata: null }] },
    });
    ledger.routes.setChannels([to('ops', ['alert.*']), to('mail', ['submission.*'])]);
    finalize('s1');
    await clock.advance(11 * MINUTE_MS);
    expect(messages()).toEqual(['alert.raised']);
    expect(alerts('firing')[0]).toMatchObject({
      ...{ rule: 'channel_failing', subject: 'channel:mail' },
      summary:
        'All attempts at the channel mail fail (the connection was refused); 1 delivery waits',
    });
    // Removed from the settings.
    ledger.routes.setChannels([to('ops', ['alert.*'])]);
    await clock.advance(10_000);
    expect(messages()).toEqual(['alert.raised', 'alert.resolved']);
  });

  it('a disabled webhook is reported through the other channels, and resolved once it is enabled', async () => {
    const { clock, ledger, messages, webhook, finalize } = openWatch((destination) =>
      destination.startsWith('webhook:') ? failed({ httpStatus: 410, gone: true }) : delivered,
    );
    const id = webhook('https://gone.example', { types: ['submission.*'] });
    finalize('s1');
    await clock.advance(10_000);
    expect(messages()).toEqual(['alert.raised']);
    ledger.webhooks.update(id, { enabled: true }, clock.now());
    await clock.advance(10_000);
    // The webhook is enabled and has a dead letter, which is another alert.
    expect(messages().toSorted()).toEqual(['alert.raised', 'alert.raised', 'alert.resolved']);
    ledger.webhooks.delete(id, clock.now());
    await clock.advance(10_000);
    expect(messages().filter((type) => type === 'alert.resolved')).toHaveLength(2);
  });
});
