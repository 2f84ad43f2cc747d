import { describe, expect, it } from 'vitest';
import { toEventBody } from '../../src/notifications/event-body.ts';
import { context, observation } from '../support/ledger/domain.ts';
import { type Ledger, openLedger, trackRequest } from '../support/ledger/ledger-file.ts';

const LIMITS = { deadlineAt: 10_000, graceEndsAt: 1_100, stuckAt: 2_100 };

function openTracked(fields: Parameters<typeof trackRequest>[1] = {}): Ledger {
  const ledger = openLedger();
  ledger.track([trackRequest('s', { ...LIMITS, metadata: { order: 1 }, ...fields })], 100);
  return ledger;
}

const eventsOf = (ledger: Ledger) =>
  ledger.events.after(0, 100).map((event) => ('damage' in event ? event : toEventBody(event)));

describe('an update', () => {
  it('shows in later events only', () => {
    const ledger = openTracked();
    ledger.record([observation('error', 200, 's')], context());
    const before = eventsOf(ledger);
    ledger.update('s', { metadata: { order: 2 } }, 300);
    expect(eventsOf(ledger)).toEqual(before);
    ledger.update('s', { metadata: { order: 3 }, deadlineAt: 20_000 }, 400);
    ledger.record([observation('pending', 500, 's')], context());
    const shown = eventsOf(ledger);
    expect(shown.slice(0, 1)).toEqual(before);
    const submission = { metadata: { order: 3 }, deadline_at: '1970-01-01T00:00:20.000Z' };
    expect(shown[1]).toMatchObject({
      type: 'submission.recovered',
      data: { previous_status: 'failing', submission },
    });
  });
});

describe('a new callback URL', () => {
  const OLD = 'https://old.example/hook?token=secret';
  const deliveriesOf = (ledger: Ledger) =>
    ledger.deliveries
      .list({ limit: 10 })
      .deliveries.map(({ destination, state }) => [destination, state]);

  function openFailing(): Ledger {
    const ledger = openTracked({ callbackUrl: OLD });
    ledger.webhooks.ensureCallbacks(() => 'whsec_x', 0);
    ledger.record([observation('error', 200, 's')], context());
    expect(deliveriesOf(ledger)).toEqual([['callback:https://old.example', 'waiting']]);
    return ledger;
  }

  it('that is null discards what still waits', () => {
    const ledger = openFailing();
    ledger.update('s', { callbackUrl: null }, 300);
    expect(deliveriesOf(ledger)).toEqual([['callback:https://old.example', 'discarded']]);
    ledger.record([observation('pending', 400, 's')], context());
    expect(deliveriesOf(ledger)).toHaveLength(1);
  });
});
