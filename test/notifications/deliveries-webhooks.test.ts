import { describe, expect, it } from 'vitest';
import type { DeliveryResult, NewWebhook } from '../../src/notifications/delivery.ts';
import { context, observation } from '../support/ledger/domain.ts';
import {
  type Ledger,
  openLedger,
  rawConnection,
  trackRequest,
} from '../support/ledger/ledger-file.ts';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const NEW: NewWebhook = {
  url: 'https://a.example/hook',
  types: ['submission.*'],
  metadata: null,
  description: 'billing',
  enabled: true,
};
const create = (ledger: Ledger, fields: Partial<NewWebhook> = {}, at = 10) =>
  ledger.webhooks.create({ ...NEW, ...fields }, 'whsec_first', at).id;

/** Adds one event about this submission. */
function finalize(ledger: Ledger, submissionId: string, at = 20): void {
  ledger.track([trackRequest(submissionId, { deadlineAt: at + DAY_MS })], at);
  ledger.record([observation('finalized', at, submissionId)], context());
}

const states = (ledger: Ledger) =>
  ledger.deliveries
    .list({ limit: 100 })
    .deliveries.map(({ state, deadReason }) => deadReason ?? state);

describe('webhooks', () => {
  it('deleting a webhook discards its waiting deliveries; delivered ones stay', () => {
    const ledger = openLedger();
    const id = create(ledger);
    finalize(ledger, 's1');
    finalize(ledger, 's2');
    const [second, first] = ledger.deliveries.list({ limit: 2 }).deliveries;
    const attempt = { at: 25, durationMs: 1, httpStatus: 200, error: null, response: 'ok' };
    const destination = `webhook:${id}`;
    ledger.deliveries.recordResults([
      {
        deliveryId: first?.id ?? 0,
        destination,
        attempts: 0,
        address: NEW.url,
        attempt,
        next: { kind: 'delivered' },
      },
    ]);
    expect(ledger.webhooks.delete(id, 30)).toBe(true);
    expect(ledger.webhooks.delete(id, 30)).toBe(false);
    finalize(ledger, 's3');
    expect(states(ledger)).toEqual(['discarded', 'delivered']);
    expect(ledger.deliveries.replay(second?.id ?? 0, 40)).toBe('discarded');
  });

  it('a webhook that is deleted during an attempt stays deleted, and the attempt is recorded', () => {
    const ledger = openLedger();
    const id = create(ledger);
    finalize(ledger, 's1');
    const [delivery] = ledger.deliveries.list({ limit: 1 }).deliveries;
    ledger.webhooks.delete(id, 30);
    const attempt = {
      at: 25,
      durationMs: 10,
      httpStatus: 500,
      error: 'answered with 500',
      response: null,
    };
    const result = {
      deliveryId: delivery?.id ?? 0,
      destination: `webhook:${id}`,
      attempts: 0,
      address: NEW.url,
      attempt,
    };
    ledger.deliveries.recordResults([{ ...result, next: { kind: 'retry', at: 99 } }]);
    expect(states(ledger)).toEqual(['discarded']);
    expect(ledger.deliveries.get(delivery?.id ?? 0)?.attempts).toEqual([attempt]);
  });
});

describe('the response of a receiver', () => {
  const settle = (ledger: Ledger, id: string, at: number, fields: Partial<DeliveryResult> = {}) => {
    const [delivery] = ledger.deliveries.list({ limit: 1 }).deliveries;
    const attempt = {
      at,
      durationMs: 1,
      httpStatus: 500,
      error: 'answered with 500',
      response: null,
    };
    const result = {
      deliveryId: delivery?.id ?? 0,
      destination: `webhook:${id}`,
      attempts: 0,
      address: NEW.url,
      attempt,
    };
    const next = { kind: 'retry', at: at + 10 } as const;
    ledger.deliveries.recordResults([{ ...result, next, ...fields }]);
  };

  it('does not count if it is old: only successive failures disable a webhook', () => {
    const ledger = openLedger();
    const id = create(ledger);
    for (const day of [1, 100, 101, 102, 103, 104, 104.9]) {
      finalize(ledger, `s${day}`, day * DAY_MS);
      settle(ledger, id, day * DAY_MS);
      expect(ledger.webhooks.get(id, 0)?.enabled, `day ${day}`).toBe(true);
    }
    finalize(ledger, 's105', 105 * DAY_MS);
    settle(ledger, id, 105 * DAY_MS);
    expect(ledger.webhooks.get(id, 0)).toMatchObject({ enabled: false, disabledReason: 'failing' });
    ledger.webhooks.update(id, { enabled: false }, 106 * DAY_MS);
    expect(ledger.webhooks.get(id, 0)).toMatchObject({ disabledReason: 'operator' });
  });

  it('makes its delivery failing until it is replayed', () => {
    const ledger = openLedger();
    const id = create(ledger);
    const failing = () => {
      const { deliveries } = ledger.deliveries.list({ limit: 9, state: 'failing' });
      return deliveries.map(({ submissionId }) => submissionId);
    };
    finalize(ledger, 's1');
    finalize(ledger, 's2');
    expect(failing()).toEqual([]);
    settle(ledger, id, 20);
    expect(failing()).toEqual(['s2']);
    expect(ledger.stats.deliveries()).toMatchObject({ waiting: 2, failing: 1 });
    ledger.deliveries.replay(ledger.deliveries.list({ limit: 1 }).deliveries[0]?.id ?? 0, 30);
    expect(failing()).toEqual([]);
  });

  it('to an attempt from before a replay does not end the replay', () => {
    const ledger = openLedger();
    const id = create(ledger);
    finalize(ledger, 's1');
    settle(ledger, id, 20);
    const [delivery] = ledger.deliveries.list({ limit: 1 }).deliveries;
    ledger.deliveries.replay(delivery?.id ?? 0, 30);
    settle(ledger, id, 25, { attempts: 9, next: { kind: 'dead', reason: 'attempts_used_up' } });
    expect(ledger.deliveries.list({ limit: 1 }).deliveries).toMatchObject([
      { state: 'waiting', nextAt: 30 },
    ]);
    expect(ledger.deliveries.get(delivery?.id ?? 0)?.attempts).toHaveLength(2);
  });

  it('counts in the statistics of its webhook for 24 hours', () => {
    const ledger = openLedger();
    const id = create(ledger);
    finalize(ledger, 's1');
    const lastDay = (at: number) => ledger.webhooks.get(id, at * HOUR_MS)?.lastDay;
    const attempted = (at: number, durationMs: number, httpStatus: number | null) =>
      settle(ledger, id, at * HOUR_MS, {
        attempt: {
          at: at * HOUR_MS,
          durationMs,
          httpStatus,
          error: httpStatus === 200 ? null : 'failed',
          response: null,
        },
      });
    expect(lastDay(0)).toBeNull();
    attempted(0.5, 15_000, null);
    expect(lastDay(1)).toEqual({ attempts: 1, successRate: 0, responseP95Ms: null });
    for (let count = 0; count < 18; count += 1) attempted(1, 100, 200);
    attempted(1.2, 105, 500);
    attempted(1.9, 4_000, 200);
    const { attempts, successRate, responseP95Ms = 0 } = lastDay(2) ?? {};
    expect([attempts, successRate]).toEqual([21, 19 / 21]);
    expect(Math.abs((responseP95Ms ?? 0) / 105 - 1)).toBeLessThan(0.05);
    expect(lastDay(24.9)?.attempts).toBe(21);
    expect(lastDay(25)?.attempts).toBe(20);
    expect(lastDay(26)).toBeNull();
    // A clock that was a year ahead.
    attempted(8_760, 5, 200);
    attempted(26, 5, 200);
    expect(lastDay(26)?.attempts).toBe(1);
    expect(
      rawConnection(ledger.file).prepare('SELECT count(*) FROM webhook_stats').pluck().get(),
    ).toBe(1);
  });
});

describe('secrets', () => {
  it('the old one signs beside the new one until it expires or is replaced', () => {
    const ledger = openLedger();
    const id = create(ledger);
    const rotate = (secret: string, now: number, oldUntil: number) =>
      ledger.webhooks.rotate(id, secret, { oldUntil, now });
    rotate('whsec_second', 20, 100);
    expect(ledger.webhooks.endpoint(id, 99)?.secrets).toEqual(['whsec_second', 'whsec_first']);
    expect(ledger.webhooks.endpoint(id, 100)?.secrets).toEqual(['whsec_second']);
    rotate('whsec_third', 30, 200);
    expect(ledger.webhooks.endpoint(id, 150)?.secrets).toEqual(['whsec_third', 'whsec_second']);
    rotate('whsec_leaked', 40, 40);
    expect(ledger.webhooks.endpoint(id, 40)?.secrets).toEqual(['whsec_leaked']);
    expect(ledger.webhooks.rotate('wh_nobody', 'x', { oldUntil: 0, now: 0 })).toBeUndefined();
  });

  it('the endpoint of the callbacks is created once', () => {
    const ledger = openLedger();
    let made = 0;
    const makeSecret = () => `whsec_${++made}`;
    ledger.webhooks.ensureCallbacks(makeSecret, 0);
    ledger.webhooks.ensureCallbacks(makeSecret, 0);
    expect(ledger.webhooks.endpoint('callbacks', 0)?.secrets).toEqual(['whsec_1']);
    ledger.track([trackRequest('s1', { callbackUrl: 'https://c.example/x' })], 0);
    ledger.record([observation('finalized', 10, 's1')], context());
    expect(
      ledger.deliveries.list({ limit: 9, destination: 'callback:https://c.example' }).deliveries,
    ).toHaveLength(1);
    ledger.webhooks.update('callbacks', { enabled: false }, 20);
    expect(states(ledger)).toEqual(['endpoint_disabled']);
    expect(ledger.deliveries.replayDead('webhook:callbacks', 30)).toBeUndefined();
    ledger.webhooks.update('callbacks', { enabled: true }, 30);
    expect(
      ledger.deliveries.list({ limit: 9, destination: 'webhook:callbacks' }).deliveries,
    ).toHaveLength(1);
    const touched: string[] = [];
    ledger.deliveries.onWaiting((destinations) => touched.push(...destinations));
    expect(ledger.deliveries.replayDead('webhook:callbacks', 30)).toBe(1);
    expect(touched).toEqual(['callback:https://c.example']);
  });
});

describe('deliveries', () => {
  it('of a channel that is no longer configured are not replayed', () => {
    const ledger = openLedger();
    ledger.routes.setChannels([
      { name: 'ops', subscriptions: [{ types: ['*'], metadata: null }], gatherMs: 0 },
    ]);
    finalize(ledger, 's1');
    ledger.deliveries.endUnconfigured('channel:ops', 30);
    ledger.routes.setChannels([]);
    expect(ledger.deliveries.replayDead('channel:ops', 40)).toBeUndefined();
    expect(ledger.deliveries.replay(1, 40)).toBe('disabled');
  });

  it('old ones are deleted with their attempts in slices; waiting ones never are', () => {
    const ledger = openLedger();
    const id = create(ledger, {}, 0);
    for (let index = 0; index < 6; index++) {
      ledger.webhooks.update(id, { enabled: true }, 20 + index);
      finalize(ledger, `s${index}`, 20 + index);
      ledger.webhooks.update(id, { enabled: false }, 20 + index);
    }
    ledger.webhooks.update(id, { types: ['alert.*'] }, 26);
    create(ledger);
    finalize(ledger, 'waits', 21);
    expect(ledger.deliveries.prune(25, 3)).toBe(3);
    expect(ledger.deliveries.prune(25, 3)).toBe(2);
    expect(ledger.deliveries.prune(25, 3)).toBe(0);
    expect(states(ledger)).toEqual(['waiting', 'endpoint_disabled']);
  });
});
