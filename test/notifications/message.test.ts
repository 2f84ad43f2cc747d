import { describe, expect, it } from 'vitest';
import { type EventRecord, toEventBody } from '../../src/notifications/event-body.ts';
import { toMessage } from '../../src/notifications/message.ts';
import { EVENT_TYPES } from '../../src/submissions/event-types.ts';
import { finalEnvelope, ID } from '../support/ledger/domain.ts';
import { AT, alertEvent, failedEvent, submissionEvent, upstreamEvent } from './sample-events.ts';

const TEST_EVENT: EventRecord = {
  seq: 1,
  id: 'evt_1',
  at: AT,
  type: 'webhook.test',
  webhookId: 'wh_1',
};

/** Returns the lines of the text below the title. */
function linesOf(...batch: [EventRecord, ...EventRecord[]]): string[] {
  return toMessage(batch).text.split('\n').slice(2);
}

describe('one event', () => {
  it('contains all known values of a final submission', () => {
    const event = submissionEvent('submission.finalized', { metadata: { order: 7 } });
    expect(toMessage([event])).toMatchObject({
      title: `Submission ${ID} is finalized`,
      severity: 'good',
    });
    expect(linesOf(event)).toEqual([
      `Submission: ${ID}`,
      'Status: finalized (was pending)',
      'Upstream: default',
      'Upstream state: Finalized',
      'Block: 1234567',
      'Block hash: 0xb1',
      'Transaction: 0xa1',
      'Time to finality: 5 min 55 s',
      'Metadata: {"order":7}',
      'Event: submission.finalized',
      'Time: 2026-01-02T03:10:00.000Z',
    ]);
  });

  it('contains the error of a failed submission, and no line for unknown values', () => {
    expect(linesOf(failedEvent())).toEqual([
      `Submission: ${ID}`,
      'Status: failed (was failing)',
      'Upstream: default',
      'Upstream state: Error',
      'Error: TIMEOUT',
      'Event: submission.failed',
      'Time: 2026-01-02T03:10:00.000Z',
    ]);
  });

  it('contains the previous error of a recovered submission', () => {
    const event = submissionEvent(
      'submission.recovered',
      { status: 'pending' },
      { status: 'failing', error: 'TIMEOUT' },
    );
    expect(linesOf(event)).toContain('Previous error: TIMEOUT');
  });

  it('contains the previous values of a corrected submission where they differ', () => {
    const before = JSON.stringify(finalEnvelope({ block_number: 1_234_566 }));
    const event = submissionEvent(
      'submission.corrected',
      {},
      { status: 'finalized', envelope: before },
    );
    expect(linesOf(event)).toEqual(
      expect.arrayContaining([
        'Status: finalized',
        'Block: 1234567 (was 1234566)',
        'Block hash: 0xb1',
      ]),
    );
  });

  it('shows a block number in full that exceeds the JavaScript numbers', () => {
    const response = '{"data":{"block_number":123456789012345678901}}';
    expect(linesOf(submissionEvent('submission.finalized', { envelope: response }))).toContain(
      'Block: 123456789012345678901',
    );
  });

  it.each([
    ['none', { created_at: null }, '16 min 40 s'],
    ['no readable time', { created_at: 'yesterday' }, '16 min 40 s'],
  ])('with %s the time to finality counts from the first observation', (_what, data, time) => {
    const response = JSON.stringify(finalEnvelope(data));
    expect(linesOf(submissionEvent('submission.finalized', { envelope: response }))).toContain(
      `Time to finality: ${time}`,
    );
  });

  it.each([
    [
      alertEvent('alert.raised'),
      'Alert, resolved since: 12 submissions are stuck',
      'Was firing: 2026-01-02T02:05:00.000Z to 2026-01-02T03:10:30.000Z, for 1 h 5 min',
    ],
    [
      upstreamEvent('upstream.down'),
      'Upstream default was down',
      'Lasted: 2026-01-02T03:10:00.000Z to 2026-01-02T03:10:30.000Z, for 30 s',
    ],
    [
      upstreamEvent('upstream.unauthorized'),
      'Upstream default rejected the API key',
      'Lasted: 2026-01-02T03:10:00.000Z to 2026-01-02T03:10:30.000Z, for 30 s',
    ],
  ])('that is over when it is sent says so: $type', (event, title, line) => {
    const late = { ...event, endedAt: AT + 30_000 };
    expect(toMessage([late])).toMatchObject({ title, severity: 'info' });
    expect(linesOf(late)).toContain(line);
    expect(toEventBody(late)).toEqual(toEventBody(event));
  });

  it.each([['upstream.down', 'Upstream default is down', 'critical']] as const)(
    '%s is "%s"',
    (type, title, severity) => {
      expect(toMessage([upstreamEvent(type)])).toMatchObject({ title, severity });
      expect(linesOf(upstreamEvent(type))).toEqual([
        'Upstream: default',
        'Reason: HTTP 503',
        `Event: ${type}`,
        'Time: 2026-01-02T03:10:00.000Z',
      ]);
    },
  );

  it.each([
    [
      'alert.raised',
      'Alert: 12 submissions are stuck',
      'Since: 2026-01-02T02:05:00.000Z',
      'warning',
    ],
    [
      'alert.resolved',
      'Resolved: 12 submissions are stuck',
      'Was firing: 2026-01-02T02:05:00.000Z to 2026-01-02T03:10:00.000Z, for 1 h 5 min',
      'good',
    ],
  ] as const)('%s is "%s", with its start or duration', (type, title, time, severity) => {
    expect(toMessage([alertEvent(type)])).toMatchObject({ title, severity });
    expect(linesOf(alertEvent(type))).toEqual([
      'Rule: stuck',
      'Subject: default',
      ...(type === 'alert.resolved' ? [] : ['Count: 12']),
      time,
      `Event: ${type}`,
      'Time: 2026-01-02T03:10:00.000Z',
    ]);
  });

  it('every type of event has a text', () => {
    const titles = EVENT_TYPES.map((type) => {
      if (type === 'webhook.test') return toMessage([TEST_EVENT]).title;
      if (type === 'channel.test')
        return toMessage([{ ...TEST_EVENT, type, channel: 'ops' }]).title;
      if (type.startsWith('upstream.'))
        return toMessage([upstreamEvent(type as 'upstream.up')]).title;
      if (type.startsWith('alert.')) return toMessage([alertEvent(type as 'alert.raised')]).title;
      return toMessage([submissionEvent(type as 'submission.failed')]).title;
    });
    expect(new Set(titles).size).toBe(EVENT_TYPES.length);
    expect(titles.join()).not.toContain('undefined');
  });
});

describe('many events', () => {
  const many = (count: number, at = (index: number) => AT + index * 1_000) =>
    Array.from({ length: count }, (_, index) => ({
      ...failedEvent({ submissionId: `s-${index}`, upstream: index % 2 ? 'default' : 'other' }),
      at: at(index),
    })) as unknown as [EventRecord, ...EventRecord[]];

  it('are one message with their number, the first ten, and the number of the others', () => {
    const batch = many(37);
    expect(toMessage(batch)).toMatchObject({
      title: '37 submissions failed',
      severity: 'critical',
    });
    expect(linesOf(...batch)).toEqual([
      ...Array.from({ length: 10 }, (_, index) => `s-${index}: TIMEOUT`),
      'and 27 more',
      'Upstream: other, default',
      'Event: submission.failed',
      'Time: 2026-01-02T03:10:00.000Z to 2026-01-02T03:10:36.000Z',
    ]);
  });
});

describe('text from outside', () => {
  it.each([
    ['one\ntwo', 'one ↵ two'],
    ['one\r\n\r\n  two\t2\n', 'one ↵ two 2'],
    ['Error:\u2028  at x\u0085  at y', 'Error: ↵ at x ↵ at y'],
    ['bell\u0007 and \u202eevil', 'bell\\u0007 and \\u202eevil'],
  ])('an error of several lines stays readable, on one line: %j', (error, line) => {
    expect(linesOf(failedEvent({ error }))).toContain(`Error: ${line}`);
    expect(
      toMessage([
        failedEvent({ error, submissionId: 'a' }),
        failedEvent({ error, submissionId: 'b' }),
      ]).text,
    ).toContain(`a: ${line}\nb: ${line}`);
  });
});
