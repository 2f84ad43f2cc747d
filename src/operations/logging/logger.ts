import { createRequire } from 'node:module';
import { format } from 'node:util';
import { pino } from 'pino';
import type { PinoPretty, PrettyOptions } from 'pino-pretty';
import type { Clock } from '../../lib/clock.ts';
import { redactorOf } from '../../lib/redaction.ts';
import { systemClock } from '../../lib/system-clock.ts';
import { escapeText } from '../../lib/text.ts';
import type { Config } from '../config/schema.ts';
import { LogDeduplication } from './deduplication.ts';
import { isLogEvent, type Log, type LogEventName } from './event-catalog.ts';
import { toJsonLine, toPrettyLine } from './log-line.ts';

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
