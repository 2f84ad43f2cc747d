import { error, eventAt, info, type LogEvent, type LogField, warn } from './fields.ts';

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
const ALERT = [
  'rule',
  'subject',
  'summary',
  'count',
  'since',
  'muted',
] as const satisfies LogField[];

/** Deliveries, alerts and the log itself. */
export const NOTIFICATION_EVENTS = {
  'delivery.delivered': info('a receiver accepted the delivery', DELIVERY),
  'delivery.failed': warn(
    'an attempt failed and another one is scheduled',
    [...DELIVERY, 'error', 'next_at'],
    '`dawatch deliveries show <delivery_id>` shows every response',
  ),
  'delivery.dead': error(
    'the delivery became a dead letter',
    [...DELIVERY, 'error', 'reason'],
    'fix the receiver, then run `dawatch deliveries replay`',
  ),
  'dispatcher.failed': error(
    'pending deliveries could not be read, or results could not be written. The operation is retried',
    ['err'],
    'free disk space, or find the process that locks the ledger',
  ),
  'alert.raised': warn('a condition begins', ALERT, 'docs/notifications.md'),
  'alert.reminder': warn('it persists', ALERT, 'docs/notifications.md'),
  'alert.resolved': info('it has ended', ALERT),
  'heartbeat.failed': warn(
    'the address of the heartbeat did not accept a call. Written once; calls continue',
    ['error'],
    'check the service behind `heartbeat.url`; `dawatch doctor` tests the connection',
  ),
  'heartbeat.withheld': error(
    'a heartbeat was not sent, because this server does not work. Written once',
    ['reason'],
    'see `reason`; `/readyz` shows the ledger and the upstreams',
  ),
  'heartbeat.resumed': info('a heartbeat was accepted after others were not'),
  'log.suppressed': eventAt('warn', 'error')(
    'a minute has ended in which repeated lines of an event were suppressed',
    ['suppressed_event', 'suppressed', 'upstream', 'destination', 'rule', 'subject'],
    'see the lines of the event before this one',
  ),
} as const satisfies Record<string, LogEvent>;
