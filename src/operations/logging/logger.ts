import { createRequire } from 'node:module';
import { format } from 'node:util';
import { pino } from 'pino';
import type { PinoPretty, PrettyOptions } from 'pino-pretty';
import type { Clock } from '../../lib/clock.ts';
import { redactorOf } from '../../lib/redaction.ts';
import { systemClock } from '../../lib/system-clock.ts';
import { escapeJson, escapeLines, escapeText } from '../../lib/text.ts';
import type { Config } from '../config/schema.ts';
import { isLogEvent, type Log, type LogEventName } from './event-catalog.ts';

export type { Log };

const require = createRequire(import.meta.url);

export type OpenLog = Log & {
  /** Changes the level and the secrets. The secrets before the change are still replaced. */
  change(settings: { level: Config['log']['level']; secrets: readonly string[] }): void;
  /** Reports the lines suppressed so far. */
  end(): void;
};

/**
 * Field names redacted at three levels of nesting, as a safeguard: no code logs these fields on
 * purpose.
 */
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

/**
 * Lines per minute of one event about one subject at warn and error: an outage must not fill the
 * disk, and ten lines show whether the reasons differ.
 */
const REPEATS_PER_MINUTE = 10;

/**
 * Returns a log that writes to `stream`, as JSON unless it is a terminal. Occurrences of `secrets`
 * anywhere in a line are replaced. `repeatsPerMinute` 0: no limit.
 */
export function createLog(
  settings: Config['log'],
  stream: pino.DestinationStream & { isTTY?: boolean },
  {
    clock = systemClock,
    secrets = [],
    repeatsPerMinute = REPEATS_PER_MINUTE,
  }: { clock?: Clock; secrets?: readonly string[]; repeatsPerMinute?: number } = {},
): OpenLog {
  const isPretty = stream.isTTY === true;
  const deduplication = new LogDeduplication({
    perMinute: repeatsPerMinute,
    clock,
    onSuppressed: ({ level, event, subject, suppressed }) => {
      const fields = { suppressed_event: event, ...subject, suppressed };
      if (level === 'warn') log.warn(fields, 'log.suppressed');
      else log.error(fields, 'log.suppressed');
    },
  });
  let current = secrets;
  let redact = redactorOf(secrets);
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
        const level = pino.levels.labels[levelNumber];
        const isLimited = (level === 'warn' || level === 'error') && event !== 'log.suppressed';
        if (!isLimited || deduplication.allows(level, event, fields))
          write.call(this, fields, event);
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
  const logger = pino(options, destination);
  const log: OpenLog = Object.assign(logger, {
    change({ level, secrets: next }: Parameters<OpenLog['change']>[0]) {
      // Responses to requests with a previous secret may still quote it.
      redact = redactorOf([...next, ...current]);
      current = next;
      logger.level = level;
    },
    end: () => deduplication.flush(),
  });
  return log;
}

/** Loads pino-pretty on demand, because loading it would slow down every start. */
function prettyStream(options: PrettyOptions): pino.DestinationStream {
  const { build } = require('pino-pretty') as typeof PinoPretty;
  return build(options);
}

/**
 * Returns the fields and the event of a log call. A message of a library becomes
 * `http.library_message`; of its fields only the error is kept, because requests and responses may
 * contain personal data.
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

/**
 * Serializes an error with its causes, truncated and escaped: its message may quote a whole
 * upstream response.
 */
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

const MINUTE_MS = 60_000;
/** With more subjects than this in a minute, lines are counted by event alone. */
const MAX_SUBJECTS = 1_000;
const SUBJECT_FIELDS = ['upstream', 'destination', 'rule', 'subject'] as const;

/** The suppressed lines of one event about one subject. */
export type Suppressed = {
  level: 'warn' | 'error';
  event: LogEventName;
  subject: { [Field in (typeof SUBJECT_FIELDS)[number]]?: unknown };
  suppressed: number;
};

/**
 * Limits the lines of one event about one subject per minute and reports the number of suppressed
 * lines when the minute ends. A minute starts with the first line after the previous one ended and
 * is shared by all events.
 */
export class LogDeduplication {
  readonly #deps: {
    perMinute: number;
    clock: Clock;
    onSuppressed: (suppressed: Suppressed) => void;
  };
  readonly #counts = new Map<string, Suppressed & { written: number }>();
  #cancel: (() => void) | undefined;

  /** `perMinute` 0 disables the limit. */
  constructor(deps: {
    perMinute: number;
    clock: Clock;
    onSuppressed: (suppressed: Suppressed) => void;
  }) {
    this.#deps = deps;
  }

  /** Counts a line and returns whether to write it. */
  allows(
    level: 'warn' | 'error',
    event: LogEventName,
    fields: Readonly<Record<string, unknown>>,
  ): boolean {
    const { perMinute, clock } = this.#deps;
    if (perMinute === 0) return true;
    this.#cancel ??= clock.after(MINUTE_MS, () => this.flush());
    const count = this.#countOf(level, event, fields);
    if (count.written < perMinute) {
      count.written += 1;
      return true;
    }
    count.suppressed += 1;
    return false;
  }

  /** Ends the current minute and reports its suppressed lines. */
  flush(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const counts = [...this.#counts.values()];
    this.#counts.clear();
    for (const { written: _, ...count } of counts)
      if (count.suppressed > 0) this.#deps.onSuppressed(count);
  }

  #countOf(
    level: 'warn' | 'error',
    event: LogEventName,
    fields: Readonly<Record<string, unknown>>,
  ) {
    const isFull = this.#counts.size >= MAX_SUBJECTS;
    const names = isFull ? [] : SUBJECT_FIELDS.filter((name) => fields[name] !== undefined);
    const subject = Object.fromEntries(names.map((name) => [name, fields[name]]));
    const key = JSON.stringify([level, event, subject]);
    const count = this.#counts.get(key) ?? { level, event, subject, suppressed: 0, written: 0 };
    this.#counts.set(key, count);
    return count;
  }
}

export const MAX_LINE_BYTES = 16 * 1024;

/** Limits applied one after the other until a line fits. */
const LIMITS = [
  { chars: 2_000, items: 50 },
  { chars: 500, items: 20 },
  { chars: 100, items: 10 },
] as const;
type Limit = (typeof LIMITS)[number];

/**
 * Returns a line of JSON with control characters escaped and at most MAX_LINE_BYTES long. A
 * truncated line has `"cut":true`.
 */
export function toJsonLine(line: string): string {
  const escaped = escapeJson(line);
  if (fits(escaped)) return escaped;
  const { level, time, event, ...fields } = JSON.parse(line) as Record<string, unknown>;
  for (const limit of LIMITS) {
    const kept = { level, time, ...truncateFields(fields, limit), event, cut: true };
    const shorter = escapeJson(`${JSON.stringify(kept)}\n`);
    if (fits(shorter)) return shorter;
  }
  return `${JSON.stringify({ level, time, event, cut: true })}\n`;
}

/**
 * Like `toJsonLine`, for pino-pretty: escapes the decoded texts, because they are printed without
 * JSON escapes.
 */
export function toPrettyLine(line: string): string {
  const shown = (key: string, value: unknown) => {
    if (typeof value !== 'string') return value;
    return key === 'stack' ? escapeLines(value) : escapeText(value, value.length);
  };
  return `${JSON.stringify(JSON.parse(toJsonLine(line)), shown)}\n`;
}

function fits(line: string): boolean {
  return line.length * 3 <= MAX_LINE_BYTES || Buffer.byteLength(line) <= MAX_LINE_BYTES;
}

function truncateValue(value: unknown, limit: Limit): unknown {
  if (typeof value === 'string')
    return value.length > limit.chars ? `${value.slice(0, limit.chars)}…` : value;
  if (Array.isArray(value))
    return value.slice(0, limit.items).map((item) => truncateValue(item, limit));
  return typeof value === 'object' && value !== null ? truncateFields(value, limit) : value;
}

function truncateFields(fields: object, limit: Limit): Record<string, unknown> {
  const kept = Object.entries(fields).slice(0, limit.items);
  return Object.fromEntries(
    kept.map(([name, value]) => [name.slice(0, limit.chars), truncateValue(value, limit)]),
  );
}
