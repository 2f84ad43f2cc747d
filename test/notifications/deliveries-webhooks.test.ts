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
