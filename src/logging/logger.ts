import { createRequire } from 'node:module';
import { format } from 'node:util';
import { pino } from 'pino';
import type { PinoPretty, PrettyOptions } from 'pino-pretty';
import type { Config } from '../config/schema.ts';
import type { Clock } from '../domain/clock.ts';
import type { Alert } from '../domain/notifications/alert.ts';
import { dataOf, upstreamTime } from '../domain/notifications/envelope.ts';
import { AlertEventType, type SubmissionEventType, UpstreamEventType } from '../domain/notifications/events.ts';
import { redactorOf } from '../domain/redaction.ts';
import { printable } from '../domain/text.ts';
import type { Attempted } from '../notify/dispatch/result.ts';
import { systemClock } from '../platform/system-clock.ts';
import type { MonitorListener } from '../watch/listeners.ts';
import type { Recorded } from '../watch/ports.ts';
import { LogRepeats } from './deduplication.ts';
import { isLogEvent, type Log, type LogEventName } from './event-catalog.ts';
import { toShownLine, toWrittenLine } from './log-line.ts';

export type { Log };

const require = createRequire(import.meta.url);

/** Ending it says what was held back so far. */
export type OpenLog = Log & { end(): void };

/** A second line of defence, down to three levels: nothing here logs secrets on purpose. */
const REDACTED = [
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

/** `secrets`: of the settings; whoever quotes one, in whatever a line says, it is not written. */
export function createLog(
  settings: Config['log'],
  stream: pino.DestinationStream & { isTTY?: boolean },
  { clock = systemClock, secrets = [] }: { clock?: Clock; secrets?: readonly string[] } = {},
): OpenLog {
  const isPretty = settings.format === 'pretty' || (settings.format === 'auto' && stream.isTTY === true);
  const repeats = new LogRepeats({
    perMinute: settings.repeats_per_minute,
    clock,
    onSuppressed: ({ level, of, about, suppressed }) => {
      const fields = { of, ...about, suppressed };
      if (level === 'warn') log.warn(fields, 'log.repeated');
      else log.error(fields, 'log.repeated');
    },
  });
  const redact = redactorOf(secrets);
  const options: pino.LoggerOptions = {
    level: settings.level,
    base: null,
    messageKey: 'event',
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: describeError },
    redact: {
      paths: REDACTED.flatMap((name) => [`["${name}"]`, `*["${name}"]`, `*.*["${name}"]`]),
      censor: '[redacted]',
    },
    hooks: {
      logMethod(args: readonly unknown[], write, levelNumber) {
        const { fields, event } = namedLine(args);
        const level = pino.levels.labels[levelNumber];
        const isLimited = (level === 'warn' || level === 'error') && event !== 'log.repeated';
        if (!isLimited || repeats.allows(level, event, fields)) write.call(this, fields, event);
      },
      streamWrite: (line) => (isPretty ? toShownLine : toWrittenLine)(redact(line)),
    },
  };
  const destination = isPretty
    ? prettyStream({ destination: stream, messageKey: 'event', singleLine: true, translateTime: 'HH:MM:ss' })
    : stream;
  const log: OpenLog = Object.assign(pino(options, destination), { end: () => repeats.flush() });
  return log;
}

/** Loaded only where people read: it would make every start slower. */
function prettyStream(options: PrettyOptions): pino.DestinationStream {
  const { build } = require('pino-pretty') as typeof PinoPretty;
  return build(options);
}

/** What is told in a library's own words gets a name too; of what it tells besides only the error is kept. */
function namedLine(args: readonly unknown[]): { fields: Record<string, unknown>; event: LogEventName } {
  const [first, ...words] = args;
  if (isLogEvent(first)) return { fields: {}, event: first };
  const fields = typeof first === 'object' && first !== null ? { ...first } : {};
  if (isLogEvent(words[0])) return { fields, event: words[0] };
  const err = first instanceof Error ? first : 'err' in fields ? fields.err : undefined;
  const said = format(...(typeof first === 'object' ? words : args)).replaceAll(/\?\S*/g, '');
  return {
    fields: { ...(said !== '' && { said: printable(said) }), ...(err !== undefined && { err }) },
    event: 'http.noted',
  };
}

const MAX_STACK_CHARS = 1_500;

/** An error with its causes, cut and printable: it may quote a whole answer of the upstream. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return typeof error === 'string' ? printable(error) : error;
  const { type, message, stack } = pino.stdSerializers.err(error);
  return {
    type,
    message: printable(message),
    code: 'code' in error && typeof error.code === 'string' ? printable(error.code) : undefined,
    stack: stack
      .slice(0, MAX_STACK_CHARS)
      .split('\n')
      .map((line) => printable(line))
      .join('\n'),
  };
}

/** One wide line per thing that happened; the message is its stable name. */
export function logMonitor(log: Log): MonitorListener {
  return {
    recorded: (recorded) => {
      logAnswer(log, recorded);
      if (recorded.outcome.becameStuck) log.warn(describe(recorded), 'submission.stuck');
      if (recorded.outcome.change?.event) logChange(log, describe(recorded), recorded.outcome.change.event);
    },
    upstream: ({ upstream, event, record }) => {
      const fields = { upstream, outage_ms: record.outageMs };
      if (event === UpstreamEventType.up) log.info(fields, event);
      else log.error(fields, event);
    },
    writeFailed: (error) => log.error({ err: error }, 'ledger.write_failed'),
    listenerFailed: (error) => log.error({ err: error }, 'listener.failed'),
  };
}

function logChange(log: Log, fields: ReturnType<typeof describe>, event: SubmissionEventType): void {
  switch (event) {
    case 'submission.finalized':
    case 'submission.corrected':
    case 'submission.failing':
    case 'submission.recovered':
      log.info(fields, event);
      return;
    case 'submission.failed':
    case 'submission.unknown':
    case 'submission.rejected':
    case 'submission.expired':
    case 'submission.stuck':
      log.warn(fields, event);
      return;
    case 'submission.cancelled':
      // It comes with a request, which is told of.
      return;
    default:
      event satisfies never;
  }
}

function logAnswer(log: Log, { observation, submission }: Recorded): void {
  if (!log.isLevelEnabled('debug')) return;
  const { kind, durationMs } = observation;
  const error = 'error' in observation && observation.error ? printable(observation.error) : undefined;
  log.debug({ submission_id: submission.submissionId, kind, duration_ms: durationMs, error }, 'poll.answered');
}

function describe({ submission, previousStatus }: Recorded) {
  const data = dataOf(submission.answer);
  const createdAt = upstreamTime(typeof data?.created_at === 'string' ? data.created_at : null);
  return {
    submission_id: submission.submissionId,
    upstream: submission.upstream,
    status: submission.status,
    previous_status: previousStatus,
    upstream_state: submission.upstreamState && printable(submission.upstreamState),
    error: submission.error === null ? undefined : printable(submission.error),
    block_number: typeof data?.block_number === 'number' ? data.block_number : undefined,
    block_hash: typeof data?.block_hash === 'string' ? printable(data.block_hash) : undefined,
    tracked_ms: (submission.finalizedAt ?? submission.polledAt ?? submission.trackedAt) - submission.trackedAt,
    time_to_finality_ms:
      submission.finalizedAt === null
        ? undefined
        : submission.finalizedAt - Math.min(createdAt ?? submission.trackedAt, submission.finalizedAt),
    polls: submission.polls,
  };
}

/** One line per attempt to tell somebody something. */
export function logAttempt(log: Log): (attempted: Attempted) => void {
  return ({ destination, deliveryIds, eventIds, eventType, submissionId, attempt, durationMs, result, next }) => {
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
        { ...fields, error: printable(result.error), next_at: new Date(next.at).toISOString() },
        'delivery.failed',
      );
    else log.error({ ...fields, error: printable(result.error), reason: next.kind }, 'delivery.dead');
  };
}

export function logAlert(log: Log): (told: { type: AlertEventType; alert: Alert }) => void {
  return ({ type, alert }) => {
    const { since, ...fields } = alert;
    const told = { ...fields, since: new Date(since).toISOString() };
    if (type === AlertEventType.resolved) log.info(told, type);
    else log.warn(told, type);
  };
}
