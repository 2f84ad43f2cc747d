import { describe, expect, it } from 'vitest';
import { toEventBody } from '../../src/notifications/event-body.ts';
import { context, historyOf, observation } from '../support/ledger/domain.ts';
import { type Ledger, openLedger, outboxOf, trackRequest } from '../support/ledger/ledger-file.ts';

const LIMITS = { deadlineAt: 10_000, graceEndsAt: 1_100, stuckAt: 2_100 };

function openTracked(fields: Parameters<typeof trackRequest>[1] = {}): Ledger {
  const ledger = openLedger();
  ledger.track([trackRequest('s', { ...LIMITS, metadata: { order: 1 }, ...fields })], 100);
  return ledger;
}

const eventsOf = (ledger: Ledger) =>
  ledger.events.after(0, 100).map((event) => ('damage' in event ? event : toEventBody(event)));

describe('an update', () => {
  it('changes the named options, and the history records their values', () => {
    const ledger = openTracked();
    ledger.record([observation('pending', 200, 's')], context());
    const before = ledger.submissions.get('s');
    const patch = {
      deadlineAt: 90_000,
      unknownGraceMs: 5_000,
      stuckAfterMs: 6_000,
      metadata: null,
    };
    const after = {
      ...before,
      deadlineAt: 90_000,
      graceEndsAt: 5_100,
      stuckAt: 6_100,
      metadata: null,
      version: 3,
    };
    const result = ledger.update('s', patch, 300);
    expect(result).toMatchObject({
      kind: 'updated',
      submission: after,
    });
    expect(ledger.submissions.get('s')).toEqual(after);
    expect(historyOf(ledger, 's').at(-1)).toMatchObject({
      at: 300,
      status: 'pending',
      previousStatus: 'pending',
      upstreamState: 'Pending',
      changes: {
        deadlineAt: [10_000, 90_000],
        unknownGraceMs: [1_000, 5_000],
        stuckAfterMs: [2_000, 6_000],
        metadata: [{ order: 1 }, null],
      },
    });
    expect(outboxOf(ledger.file)).toEqual([]);
  });

  it('that differs in nothing leaves no trace', () => {
    const ledger = openTracked();
    const before = ledger.submissions.get('s');
    const patch = {
      deadlineAt: 10_000,
      unknownGraceMs: 1_000,
      metadata: { order: 1 },
      callbackUrl: null,
    };
    expect(ledger.update('s', patch, 300)).toEqual({
      kind: 'updated',
      submission: before,
      changed: [],
    });
    expect(historyOf(ledger, 's')).toHaveLength(1);
  });

  it('of a submission that has ended changes metadata and callback only', () => {
    const ledger = openTracked();
    ledger.record([observation('finalized', 200, 's')], context());
    const before = ledger.submissions.get('s');
    for (const patch of [
      { deadlineAt: 90_000 },
      { unknownGraceMs: 1 },
      { stuckAfterMs: 1, metadata: null },
    ])
      expect(ledger.update('s', patch, 300)).toEqual({ kind: 'final', submission: before });
    expect(ledger.update('s', { metadata: { order: 2 } }, 300)).toMatchObject({ kind: 'updated' });
    expect(ledger.submissions.get('s')).toEqual({ ...before, metadata: { order: 2 }, version: 3 });
    const prune = { after: { endedAt: 0, id: 0 }, before: { endedAt: 1e12, id: 0 }, limit: 10 };
    ledger.track([trackRequest('newer')], 400);
    expect(ledger.pruning.submissions(prune)).toMatchObject({ deleted: 1 });
  });

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
  const NEW = 'https://new.example/hook?token=secret';
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

  it('receives what still waits for the earlier one, and the history shows no secret', () => {
    const ledger = openFailing();
    const waiting: string[] = [];
    ledger.deliveries.onWaiting((destinations) => waiting.push(...destinations));
    ledger.update('s', { callbackUrl: NEW }, 300);
    expect([deliveriesOf(ledger), waiting]).toEqual([
      [['callback:https://new.example', 'waiting']],
      ['callback:https://new.example'],
    ]);
    const query = { now: 400, limit: 10, except: new Set<number>() };
    expect(ledger.deliveries.due('callback:https://new.example', query)).toMatchObject([
      { callbackUrl: NEW },
    ]);
    expect(historyOf(ledger, 's').at(-1)?.changes).toEqual({
      callbackOrigin: ['https://old.example', 'https://new.example'],
    });
  });

  it('that is null discards what still waits', () => {
    const ledger = openFailing();
    ledger.update('s', { callbackUrl: null }, 300);
    expect(deliveriesOf(ledger)).toEqual([['callback:https://old.example', 'discarded']]);
    ledger.record([observation('pending', 400, 's')], context());
    expect(deliveriesOf(ledger)).toHaveLength(1);
  });
});
