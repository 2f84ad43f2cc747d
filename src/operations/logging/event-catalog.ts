import { LOG_FIELDS, type LogEvent, type LogLevel } from './fields.ts';
import { HTTP_EVENTS } from './http-events.ts';
import { LEDGER_EVENTS } from './ledger-events.ts';
import { NOTIFICATION_EVENTS } from './notification-events.ts';
import { REDIS_EVENTS } from './redis-events.ts';
import { SUBMISSION_EVENTS } from './submission-events.ts';

export { LOG_FIELDS, type LogEvent };

/** Every log event by its stable name. docs/logs.md is generated from it. */
export const LOG_EVENTS = {
  ...HTTP_EVENTS,
  ...SUBMISSION_EVENTS,
  ...LEDGER_EVENTS,
  ...NOTIFICATION_EVENTS,
  ...REDIS_EVENTS,
} as const;

export type LogEventName = keyof typeof LOG_EVENTS;
type NamesAt<L extends LogLevel> = {
  [Name in LogEventName]: L extends (typeof LOG_EVENTS)[Name]['levels'][number] ? Name : never;
}[LogEventName];
type FieldsOf<Name extends LogEventName> = {
  readonly [F in (typeof LOG_EVENTS)[Name]['fields'][number]]?: unknown;
};

/** Writes log lines. Accepts only the names, levels and fields of LOG_EVENTS. */
export type Log = {
  readonly [L in LogLevel]: {
    <Name extends NamesAt<L>>(fields: FieldsOf<Name>, event: Name): void;
    (event: NamesAt<L>): void;
  };
} & { isLevelEnabled(level: LogLevel): boolean };

/** Writes a line at the level of its event. */
export function logAt<Name extends LogEventName>(
  log: Log,
  fields: FieldsOf<Name>,
  event: Name,
): void {
  const level = LOG_EVENTS[event].levels[0] as LogLevel;
  (log[level] as (fields: object, event: Name) => void).call(log, fields, event);
}

export function isLogEvent(name: unknown): name is LogEventName {
  return typeof name === 'string' && Object.hasOwn(LOG_EVENTS, name);
}
