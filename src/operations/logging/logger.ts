import { createRequire } from 'node:module';
import { format } from 'node:util';
import { pino } from 'pino';
import type { PinoPretty, PrettyOptions } from 'pino-pretty';
import type { Clock } from '../../lib/clock.ts';
import { systemClock } from '../../lib/clock.ts';
import { escapeJson, escapeLines, escapeText, redactorOf } from '../../lib/text.ts';
import { LOG_EVENTS, type Log, type LogEventName } from './event-catalog.ts';

const require = createRequire(import.meta.url);

export type OpenLog = Log & {
  /** Reports the lines suppressed so far. */
  end(): void;
};

/** A safeguard at three levels of nesting: no code logs these fields on purpose. */
const REDACTED_FIELDS = [
  'x-api-key',
  'authorization',
  'api_key',
  'apiKey',
  'bearer',
  'token',
  'secret',
  'password',
  'cookie',
  'X-Api-Key',
  'Authorization',
];

/** Lines per minute of one event at warn and error: an outage must not fill the disk. */
const REPEATS_PER_MINUTE = 100;
const MINUTE_MS = 60_000;

/**
 * JSON unless `stream` is a terminal. Replaces `secrets` anywhere. `repeatsPerMinute` 0: no limit.
 */
export function createLog(
  settings: { level: pino.LevelWithSilent },
  stream: pino.DestinationStream & { isTTY?: boolean },
  {
    clock = systemClock,
    secrets = [],
    repeatsPerMinute = REPEATS_PER_MINUTE,
  }: { clock?: Clock; secrets?: readonly string[]; repeatsPerMinute?: number } = {},
): OpenLog {
  const isPretty = stream.isTTY === true;
  /** Numbers of lines in the current minute, which begins with the first of them. */
  const counts = new Map<LogEventName, number>();
  let cancelMinute: (() => void) | undefined;
  const isRepeated = (event: LogEventName): boolean => {
    cancelMinute ??= clock.after(MINUTE_MS, endMinute);
    const count = (counts.get(event) ?? 0) + 1;
    counts.set(event, count);
    return count > repeatsPerMinute;
  };
  const endMinute = (): void => {
    cancelMinute?.();
    cancelMinute = undefined;
    const ended = [...counts];
    counts.clear();
    for (const [event, count] of ended)
      if (count > repeatsPerMinute)
        log.warn(
          { suppressed_event: event, suppressed: count - repeatsPerMinute },
          'log.suppressed',
        );
  };
  const redact = redactorOf(secrets);
  const options: pino.LoggerOptions = {
    level: settings.level,
    base: null,
    messageKey: 'event',
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: describeError },
    redact: {
      paths: REDACTED_FIELDS.flatMap((name) => [`["${name}"]`, `*["${name}"]`, `*.*["${name}"]`]),
      censor: '[redacted]',
    },
    hooks: {
      logMethod(args: readonly unknown[], write, levelNumber) {
        const { fields, event } = toEvent(args);
        const isLimited =
          repeatsPerMinute > 0 &&
          levelNumber >= (pino.levels.values.warn ?? 0) &&
          event !== 'log.suppressed';
        if (!isLimited || !isRepeated(event)) write.call(this, fields, event);
      },
      streamWrite: (line) => (isPretty ? toPrettyLine : toJsonLine)(redact(line)),
    },
  };
  const destination = isPretty
    ? prettyStream({
        destination: stream,
        messageKey: 'event',
        singleLine: true,
        translateTime: 'HH:MM:ss',
      })
    : stream;
  const log: OpenLog = Object.assign(pino(options, destination), { end: endMinute });
  return log;
}

/** Loads pino-pretty on demand, because loading it would slow down every start. */
function prettyStream(options: PrettyOptions): pino.DestinationStream {
  const { build } = require('pino-pretty') as typeof PinoPretty;
  return build(options);
}

/**
 * A message of a library becomes `http.library_message`; only its error is kept, because requests
 * and responses may contain personal data.
 */
function toEvent(args: readonly unknown[]): {
  fields: Record<string, unknown>;
  event: LogEventName;
} {
  const [first, ...rest] = args;
  if (isLogEvent(first)) return { fields: {}, event: first };
  const fields = typeof first === 'object' && first !== null ? { ...first } : {};
  if (isLogEvent(rest[0])) return { fields, event: rest[0] };
  const err = first instanceof Error ? first : 'err' in fields ? fields.err : undefined;
  const message = format(...(typeof first === 'object' ? rest : args)).replaceAll(/\?\S*/g, '');
  return {
    fields: {
      ...(message !== '' && { message: escapeText(message) }),
      ...(err !== undefined && { err }),
    },
    event: 'http.library_message',
  };
}

const MAX_STACK_CHARS = 1_500;

/** With its causes, truncated and escaped: its message may quote a whole upstream response. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return typeof error === 'string' ? escapeText(error) : error;
  const { type, message, stack } = pino.stdSerializers.err(error);
  return {
    type,
    message: escapeText(message),
    code: 'code' in error && typeof error.code === 'string' ? escapeText(error.code) : undefined,
    stack: stack
      .slice(0, MAX_STACK_CHARS)
      .split('\n')
      .map((line) => escapeText(line))
      .join('\n'),
  };
}

export const MAX_LINE_BYTES = 16 * 1024;

/** Of the texts, lists and objects in a line that is too long. */
const MAX_CHARS = 500;
const MAX_ITEMS = 20;

/** Escapes control characters, at most MAX_LINE_BYTES long. A truncated line has `"cut":true`. */
export function toJsonLine(line: string): string {
  const escaped = escapeJson(line);
  if (fits(escaped)) return escaped;
  const { level, time, event, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const kept = { level, time, ...truncateFields(fields), event, cut: true };
  const shorter = escapeJson(`${JSON.stringify(kept)}\n`);
  return fits(shorter) ? shorter : `${JSON.stringify({ level, time, event, cut: true })}\n`;
}

/** For pino-pretty: escapes the decoded texts, because they are printed without JSON escapes. */
function toPrettyLine(line: string): string {
  const escaped = (key: string, value: unknown) => {
    if (typeof value !== 'string') return value;
    return key === 'stack' ? escapeLines(value) : escapeText(value, value.length);
  };
  return `${JSON.stringify(JSON.parse(toJsonLine(line)), escaped)}\n`;
}

function fits(line: string): boolean {
  return line.length * 3 <= MAX_LINE_BYTES || Buffer.byteLength(line) <= MAX_LINE_BYTES;
}

function truncateValue(value: unknown): unknown {
  if (typeof value === 'string')
    return value.length > MAX_CHARS ? `${value.slice(0, MAX_CHARS)}…` : value;
  if (Array.isArray(value)) return value.slice(0, MAX_ITEMS).map(truncateValue);
  return typeof value === 'object' && value !== null ? truncateFields(value) : value;
}

function truncateFields(fields: object): Record<string, unknown> {
  const kept = Object.entries(fields).slice(0, MAX_ITEMS);
  return Object.fromEntries(
    kept.map(([name, value]) => [name.slice(0, MAX_CHARS), truncateValue(value)]),
  );
}

function isLogEvent(name: unknown): name is LogEventName {
  return typeof name === 'string' && Object.hasOwn(LOG_EVENTS, name);
}
