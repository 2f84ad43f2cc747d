import { format } from 'node:util';
import { pino } from 'pino';
import { prettyFactory } from 'pino-pretty';
import type { Clock } from '../../lib/clock.ts';
import { systemClock } from '../../lib/clock.ts';
import { escapeJson, escapeLines, escapeText, redactorOf } from '../../lib/text.ts';
import { LOG_EVENTS, type Log, type LogEventName } from './event-catalog.ts';

export type OpenLog = Log & {
  /** Reports the lines suppressed so far. */
  end(): void;
  /** The number of lines that could not be written, to a full disk or a pipe without reader. */
  linesDropped(): number;
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

/** Lines that wait for the reader of a pipe; further ones are dropped. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

type LogStream = {
  isTTY?: boolean;
  writableLength?: number;
  write(line: string, onWritten: (error?: Error | null) => void): unknown;
};

/**
 * JSON unless `stream` is a terminal. Replaces `secrets` anywhere. `repeatsPerMinute` 0: no limit.
 * A line that the stream does not take is dropped; the caller handles its event `error`.
 */
export function createLog(
  settings: { level: pino.LevelWithSilent },
  stream: LogStream,
  {
    clock = systemClock,
    secrets = [],
    repeatsPerMinute = REPEATS_PER_MINUTE,
  }: { clock?: Clock; secrets?: readonly string[]; repeatsPerMinute?: number } = {},
): OpenLog {
  const toLine = stream.isTTY ? prettyLines() : toJsonLine;
  let linesDropped = 0;
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
      streamWrite: (line) => toLine(redact(line)),
    },
  };
  const onWritten = (error?: Error | null) => {
    if (error) linesDropped += 1;
  };
  const destination = {
    write(line: string): void {
      if ((stream.writableLength ?? 0) < MAX_WAITING_BYTES) stream.write(line, onWritten);
      else linesDropped += 1;
    },
  };
  const log: OpenLog = Object.assign(pino(options, destination), {
    end: endMinute,
    linesDropped: () => linesDropped,
  });
  return log;
}

function prettyLines(): (line: string) => string {
  const format = prettyFactory({
    messageKey: 'event',
    singleLine: true,
    translateTime: 'HH:MM:ss',
  });
  return (line) => format(toPrettyLine(line));
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

/** Of the texts in a line that is too long. */
const MAX_CHARS = 500;

/** Escapes control characters, at most MAX_LINE_BYTES long. A truncated line has `"cut":true`. */
export function toJsonLine(line: string): string {
  const escaped = escapeJson(line);
  if (fits(escaped)) return escaped;
  const { event, ...fields } = JSON.parse(line, (_, value) =>
    typeof value === 'string' && value.length > MAX_CHARS ? `${value.slice(0, MAX_CHARS)}…` : value,
  ) as Record<string, unknown>;
  const shorter = escapeJson(`${JSON.stringify({ ...fields, event, cut: true })}\n`);
  if (fits(shorter)) return shorter;
  return `${JSON.stringify({ level: fields.level, time: fields.time, event, cut: true })}\n`;
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
  return Buffer.byteLength(line) <= MAX_LINE_BYTES;
}

function isLogEvent(name: unknown): name is LogEventName {
  return typeof name === 'string' && Object.hasOwn(LOG_EVENTS, name);
}
