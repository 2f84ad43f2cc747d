import type { LogEvent, LogField } from './fields.ts';

const DELIVERY = [
  'destination',
  'delivery_id',
  'event_id',
  'submission_id',
  'type',
  'events',
  'attempt',
  'duration_ms',
  'http_status',
] as const satisfies LogField[];
const ALERT = ['rule', 'subject', 'summary', 'count', 'since'] as const satisfies LogField[];

/** Deliveries, alerts and the log itself. */
export const NOTIFICATION_EVENTS = {
  'delivery.delivered': {
    levels: ['info'],
    when: 'a receiver accepted the delivery',
    fields: DELIVERY,
  },
  'delivery.failed': {
    levels: ['warn'],
    when: 'an attempt failed and another one is scheduled',
    fields: [...DELIVERY, 'error', 'next_at'],
    advice: '`dawatch deliveries show <delivery_id>` shows every response',
  },
  'delivery.dead': {
    levels: ['error'],
    when: 'the delivery became a dead letter',
    fields: [...DELIVERY, 'error', 'reason'],
    advice: 'fix the receiver, then run `dawatch deliveries replay`',
  },
  'dispatcher.failed': {
    levels: ['error'],
    when: 'pending deliveries could not be read, or results could not be written. The operation is retried',
    fields: ['err'],
    advice: 'free disk space, or find the process that locks the ledger',
  },
  'alert.raised': { levels: ['warn'], when: 'a condition begins', fields: ALERT, advice: 'docs/notifications.md' },
  'alert.reminder': { levels: ['warn'], when: 'it persists', fields: ALERT, advice: 'docs/notifications.md' },
  'alert.resolved': { levels: ['info'], when: 'it has ended', fields: ALERT },
  'log.suppressed': {
    levels: ['warn', 'error'],
    when: 'a minute has ended in which repeated lines of an event were suppressed',
    fields: ['suppressed_event', 'suppressed', 'upstream', 'destination', 'rule', 'subject'],
    advice: '`log.repeats_per_minute: 0` disables the suppression',
  },
} as const satisfies Record<string, LogEvent>;
