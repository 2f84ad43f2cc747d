import { expect, it } from 'vitest';
import type { NewWebhook } from '../../src/notifications/delivery.ts';
import { type Ledger, openLedger, trackRequest } from '../support/ledger/ledger-file.ts';

const WEBHOOK: NewWebhook = {
  url: 'https://a.example/hook',
  types: ['submission.*'],
  metadata: null,
  description: '',
  enabled: true,
};
const SECRET = 'whsec_first';

function listen(ledger: Ledger): string[] {
  const reported: string[] = [];
  ledger.deliveries.onDead(({ destination, reason, count }) =>
    reported.push(`${destination} ${reason} ${count}`),
  );
  return reported;
}

function end(ledger: Ledger, submissionId: string): void {
  ledger.track([trackRequest(submissionId)], 1);
  ledger.cancel([submissionId], 2);
}

function settle(
  ledger: Ledger,
  next: { kind: 'dead'; reason: 'attempts_used_up' } | { kind: 'gone' },
): void {
  const [one] = ledger.deliveries.list({ limit: 1 }).deliveries;
  if (!one) throw new Error('nothing waits');
  const attempt = { at: 5, durationMs: 1, httpStatus: 500, error: 'HTTP 500', response: null };
  const { id: deliveryId, destination, attempts } = one;
  const address = ledger.webhooks.url(destination.replace('webhook:', '')) ?? null;
  ledger.deliveries.recordResults([{ deliveryId, destination, attempts, address, attempt, next }]);
}

it('every way to become a dead letter is reported after the commit, with the reason', () => {
  const ledger = openLedger();
  const reported = listen(ledger);
  const { id } = ledger.webhooks.create(WEBHOOK, SECRET, 0);
  const to = `webhook:${id}`;
  end(ledger, 's1');
  end(ledger, 's2');
  expect(reported).toEqual([]);
  settle(ledger, { kind: 'dead', reason: 'attempts_used_up' });
  expect(reported.splice(0)).toEqual([`${to} attempts_used_up 1`]);
  end(ledger, 's3');
  settle(ledger, { kind: 'gone' });
  // Includes the deliveries that waited after it.
  expect(reported.splice(0)).toEqual([`${to} endpoint_gone 1`, `${to} endpoint_disabled 1`]);
  end(ledger, 's4');
  expect(reported.splice(0)).toEqual([`${to} endpoint_disabled 1`]);
  ledger.routes.setChannels([
    { name: 'ops', subscriptions: [{ types: ['*'], metadata: null }], gatherMs: 0 },
  ]);
  ledger.webhooks.delete(id, 3);
  end(ledger, 's5');
  ledger.deliveries.endUnconfigured('channel:ops', 200);
  ledger.deliveries.endUnconfigured('channel:ops', 200);
  expect(reported.splice(0)).toEqual(['channel:ops not_configured 1']);
});
