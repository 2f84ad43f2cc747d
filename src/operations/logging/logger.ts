import { createRequire } from 'node:module';
import { format } from 'node:util';
import { pino } from 'pino';
import type { PinoPretty, PrettyOptions } from 'pino-pretty';
import { LedgerUnavailableError } from '../../ledger/errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { systemClock } from '../../lib/system-clock.ts';
import { escapeJson, escapeLines, escapeText, redactorOf } from '../../lib/text.ts';
import type { AttemptReport } from '../../notifications/attempt.ts';
import type { WatcherListener } from '../../polling/listeners.ts';
import { dataOf, upstreamTime } from '../../submissions/classify.ts';
import type { EndedSubmission, RecordedObservation } from '../../submissions/ports.ts';
import { Status } from '../../submissions/submission.ts';
import type { Config } from '../config/schema.ts';
import { LOG_EVENTS, type Log, type LogEventName, logAt } from './event-catalog.ts';

export type { Log };

const require = createRequire(import.meta.url);

export type OpenLog = Log & {
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

/** Lines per minute of one event at warn and error: an outage must not fill the disk. */
const REPEATS_PER_MINUTE = 100;
const MINUTE_MS = 60_000;

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

export const MAX_LINE_BYTES = 16 * 1024;

/** Of the texts, lists and objects in a line that is too long. */
const MAX_CHARS = 500;
const MAX_ITEMS = 20;

/**
 * Returns a line of JSON with control characters escaped and at most MAX_LINE_BYTES long. A
 * truncated line has `"cut":true`.
 */
export function toJsonLine(line: string): string {
  const escaped = escapeJson(line);
  if (fits(escaped)) return escaped;
  const { level, time, event, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const kept = { level, time, ...truncateFields(fields), event, cut: true };
  const shorter = escapeJson(`${JSON.stringify(kept)}\n`);
  return fits(shorter) ? shorter : `${JSON.stringify({ level, time, event, cut: true })}\n`;
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

/**
 * Returns a listener that writes one line per observation, change of a submission and change of an
 * upstream.
 */
export function logMonitor(log: Log): WatcherListener {
  /** Why the ledger cannot be used, as logged: its retries are not logged again. */
  let ledgerProblem: string | undefined;
  return {
    recorded: (recorded) => {
      logObservation(log, recorded);
      const fields = () => fieldsOf({ ...recorded, at: recorded.observation.at });
      if (recorded.result.becameStuck) log.warn(fields(), 'submission.stuck');
      if (recorded.result.becameContradicted) {
        const reason = escapeText(recorded.submission.chainReason ?? '');
        log.warn({ ...fields(), chain_reason: reason }, 'submission.contradicted');
      }
      const event = recorded.result.change?.event;
      // Requests of clients are logged with the request id.
      if (event && event !== 'submission.cancelled' && event !== 'submission.retracked')
        logAt(log, fields(), event);
    },
    expired: (ended) =>
      logAt(
        log,
        fieldsOf(ended),
        ended.submission.status === Status.failed ? 'submission.failed' : 'submission.expired',
      ),
    upstream: ({ upstream, event, reason, lastedMs }) => {
      const outage = event === 'upstream.up' ? { outage_ms: lastedMs } : {};
      logAt(log, { upstream, reason: escapeText(reason), ...outage }, event);
    },
    writeFailed: (error) => {
      const problem = error instanceof LedgerUnavailableError ? error.message : undefined;
      if (problem !== undefined && problem === ledgerProblem) return;
      ledgerProblem = problem ?? ledgerProblem;
      log.error({ err: error }, 'ledger.write_failed');
    },
    ledgerRecovered: () => {
      ledgerProblem = undefined;
    },
    listenerFailed: (error) => log.error({ err: error }, 'listener.failed'),
  };
}

function logObservation(log: Log, { observation, submission }: RecordedObservation): void {
  if (!log.isLevelEnabled('debug')) return;
  const { kind, durationMs, worker } = observation;
  const error =
    'error' in observation && observation.error ? escapeText(observation.error) : undefined;
  log.debug(
    { submission_id: submission.submissionId, kind, duration_ms: durationMs, worker, error },
    'poll.observed',
  );
}

function fieldsOf({ submission, previousStatus, at }: EndedSubmission) {
  const data = dataOf(submission.envelope);
  const createdAt = upstreamTime(typeof data?.created_at === 'string' ? data.created_at : null);
  return {
    submission_id: submission.submissionId,
    upstream: submission.upstream,
    status: submission.status,
    previous_status: previousStatus,
    upstream_state: submission.upstreamState && escapeText(submission.upstreamState),
    error: submission.error === null ? undefined : escapeText(submission.error),
    block_number: typeof data?.block_number === 'number' ? data.block_number : undefined,
    block_hash: typeof data?.block_hash === 'string' ? escapeText(data.block_hash) : undefined,
    tracked_ms: (submission.finalizedAt ?? at) - submission.trackedAt,
    time_to_finality_ms:
      submission.finalizedAt === null
        ? undefined
        : submission.finalizedAt -
          Math.min(createdAt ?? submission.trackedAt, submission.finalizedAt),
    polls: submission.polls,
  };
}

/** Returns a listener that writes one line per delivery attempt. */
export function logAttempt(log: Log): (attempted: AttemptReport) => void {
  return ({
    destination,
    deliveryIds,
    eventIds,
    eventType,
    submissionId,
    attempt,
    durationMs,
    result,
    next,
  }) => {
    const fields = {
      destination,
      delivery_id: deliveryIds[0],
      event_id: eventIds[0],
      submission_id: submissionId,
      type: eventType,
      events: eventIds.length,
      attempt,
      duration_ms: durationMs,
      http_status: result.httpStatus ?? undefined,
    };
    if (result.kind === 'delivered') log.info(fields, 'delivery.delivered');
    else if (next.kind === 'retry')
      log.warn(
        { ...fields, error: escapeText(result.error), next_at: new Date(next.at).toISOString() },
        'delivery.failed',
      );
    else
      log.error({ ...fields, error: escapeText(result.error), reason: next.kind }, 'delivery.dead');
  };
}
