import { describe, expect, it } from 'vitest';
import { type EventRecord, eventSchema, toEventBody } from '../../src/notifications/event-body.ts';
import { context, finalEnvelope, ID, observation, VERDICTS } from '../support/ledger/domain.ts';
import {
  openLedger,
  rawConnection,
  trackRequest,
  trackRequests,
} from '../support/ledger/ledger-file.ts';

/** Returns all events, which must be readable. */
const eventsOf = (ledger: ReturnType<typeof openLedger>, after = 0, limit = 1_000) =>
  ledger.events.after(after, limit).filter((event): event is EventRecord => !('damage' in event));
const bodies = (ledger: ReturnType<typeof openLedger>, after = 0) =>
  eventsOf(ledger, after).map((event) => ({ seq: event.seq, ...toEventBody(event) }));
const finalized = (data: Record<string, unknown>) => ({
  ...VERDICTS.finalized,
  envelope: JSON.stringify(finalEnvelope(data)),
});

describe('an event', () => {
  it('shows the submission as of the event, whatever changed or was updated later', () => {
    const ledger = openLedger();
    ledger.track(
      [trackRequest(ID, { stuckAt: 25, deadlineAt: 5_000, metadata: { order: 7 } })],
      10,
    );
    ledger.record([observation('error', 20)], context());
    const failing = bodies(ledger);
    ledger.record([observation('pending', 30)], context());
    ledger.update(ID, { metadata: { order: 8 } }, 35);
    ledger.update(ID, { deadlineAt: 20_000 }, 36);
    ledger.record([observation('finalized', 40)], context({ recheck: true }));
    ledger.record([observation(finalized({ block_number: 9 }), 50)], context({ recheck: true }));
    const all = bodies(ledger);
    expect(all.slice(0, 1)).toEqual(failing);
    const event = (type: string, at: number, previous_status: string, submission: object) => ({
      type: `submission.${type}`,
      timestamp: new Date(at).toISOString(),
      data: {
        previous_status,
        submission: { submission_id: ID, metadata: { order: at < 35 ? 7 : 8 }, ...submission },
      },
    });
    const finalized_at = '1970-01-01T00:00:00.040Z';
    expect(all).toMatchObject([
      event('failing', 20, 'tracking', {
        status: 'failing',
        error: 'TIMEOUT',
        data: null,
        finalized_at: null,
      }),
      event('recovered', 30, 'failing', {
        status: 'pending',
        error: null,
        data: { block_number: null },
      }),
      event('stuck', 30, 'pending', {
        status: 'pending',
        upstream_state: 'Pending',
        finalized_at: null,
      }),
      event('finalized', 40, 'pending', {
        status: 'finalized',
        finalized_at,
        data: { block_number: 1_234_567 },
      }),
      event('corrected', 50, 'finalized', {
        status: 'finalized',
        finalized_at,
        data: { block_number: 9 },
      }),
    ]);
    for (const { seq: _, ...body } of all) expect(eventSchema.parse(body)).toEqual(body);
    expect(all[0]?.data).toMatchObject({
      submission: {
        tracked_at: '1970-01-01T00:00:00.010Z',
        deadline_at: '1970-01-01T00:00:05.000Z',
      },
    });
  });

  it('cannot be changed', () => {
    const ledger = openLedger();
    ledger.track(trackRequests(1), 0);
    ledger.cancel(['s0'], 1);
    const raw = rawConnection(ledger.file);
    expect(() => raw.exec('UPDATE outbox SET at = 2')).toThrow('an event never changes');
  });
});

describe('events are read', () => {
  it('in smaller pages where they are large', () => {
    const ledger = openLedger();
    ledger.track(trackRequests(10), 0);
    const large = finalized({ extra: 'x'.repeat(200_000) });
    for (let index = 0; index < 10; index += 1)
      ledger.record([observation(large, 10, `s${index}`)], context());
    expect(ledger.events.after(0, 100).map(({ seq }) => seq)).toEqual([1, 2]);
    expect(ledger.events.after(9, 100).map(({ seq }) => seq)).toEqual([10]);
  });
});
