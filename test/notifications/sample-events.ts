import type { Outgoing } from '../../src/notifications/channels/channel.ts';
import { type Alert, type EventRecord, toEventJson } from '../../src/notifications/event-body.ts';
import type { SubmissionEvent } from '../../src/notifications/message.ts';
import {
  type AlertEventType,
  SubmissionEventType,
  type UpstreamEventType,
} from '../../src/submissions/event-types.ts';
import { Status } from '../../src/submissions/submission.ts';
import { finalEnvelope, ID } from '../support/ledger/domain.ts';

export const AT = Date.parse('2026-01-02T03:10:00.000Z');
let seq = 0;

type Changes = Partial<SubmissionEvent['submission']>;

/** About a submission that became final 5 min 55 s after the upstream accepted it, by default. */
export function submissionEvent(
  type: SubmissionEventType,
  submission: Changes = {},
  previous: Partial<SubmissionEvent['previous']> = {},
): SubmissionEvent {
  seq += 1;
  return {
    seq,
    id: `evt_${seq}`,
    at: AT,
    type,
    submission: {
      submissionId: ID,
      upstream: 'default',
      status: Status.finalized,
      upstreamState: 'Finalized',
      envelope: JSON.stringify(finalEnvelope({ created_at: '2026-01-02T03:04:05' })),
      chain: null,
      chainReason: null,
      error: null,
      trackedAt: AT - 1_000_000,
      finalizedAt: AT,
      finalityAt: AT - 400,
      finalitySource: 'chain',
      metadata: null,
      deadlineAt: AT + 1_000_000,
      ...submission,
    },
    previous: {
      status: Status.pending,
      upstreamState: 'Pending',
      error: null,
      envelope: null,
      ...previous,
    },
  };
}

export function failedEvent(submission: Changes = {}): SubmissionEvent {
  const fields = {
    status: Status.failed,
    upstreamState: 'Error',
    finalizedAt: null,
    envelope: null,
    error: 'TIMEOUT',
  };
  return submissionEvent(
    SubmissionEventType.failed,
    { ...fields, ...submission },
    { status: Status.failing },
  );
}

export function alertEvent(
  type: AlertEventType,
  alert: Partial<Alert> = {},
): Extract<EventRecord, { type: AlertEventType }> {
  seq += 1;
  const holds = {
    rule: 'stuck',
    subject: 'default',
    summary: '12 submissions are stuck',
    count: 12,
  } as const;
  return {
    seq,
    id: `evt_${seq}`,
    at: AT,
    type,
    alert: { id: 7, ...holds, since: AT - 3_900_000, ...alert },
  };
}

export function upstreamEvent(
  type: UpstreamEventType,
): Extract<EventRecord, { type: UpstreamEventType }> {
  seq += 1;
  return { seq, id: `evt_${seq}`, at: AT, type, upstream: 'default', reason: 'HTTP 503' };
}

export function outgoing(event: EventRecord): Outgoing {
  return { event, json: toEventJson(event), callbackUrl: null };
}

/**
 * Texts with which an upstream or a client could imitate others, mention everyone, or have a
 * message refused.
 */
export const HOSTILE_TEXTS = [
  '<!here> <!channel> <@U123456> <https://evil.example|dawatch> @everyone @here',
  '<@123456789> <@&42> **bold** [click](https://evil.example) `code` ```` ```js',
  '<at>everyone</at> # heading\n- item\n> quote ~~gone~~ |table|',
  '<script>alert(1)</script><img src=x onerror=alert(1)> &lt; "quoted" \'single\'',
  'first line\r\nBcc: everybody@evil.example\r\n\r\n<h1>another mail</h1>',
  '\u0000\u0007\u001b[31mred\u001b[0m \u202egnp.exe\u202c \u200b\ufeff\u2028\u2029',
  'lone \ud83d and \udc00, whole 🚨👩‍👩‍👧 \u{10ffff}',
  `${'&<>"`*_\\'.repeat(37_500)}`,
  '🚨'.repeat(150_000),
];

export function hostileEvent(text: string): EventRecord {
  // The ledger accepts no other ids.
  const submissionId = text.replace(/[^\x21-\x7e]/g, '').slice(0, 128) || 'x';
  return failedEvent({
    submissionId,
    error: text,
    upstreamState: text.slice(0, 200),
    metadata: { [text.slice(0, 100)]: text.slice(0, 500) },
    envelope: JSON.stringify({ data: { fees: text, amount_data: text } }),
  });
}
