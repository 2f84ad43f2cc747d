import { pino } from 'pino';
import { build } from 'pino-pretty';
import type { Config } from './config-schema.ts';
import type { Alert } from './monitor/alert.ts';
import { dataOf, upstreamTime } from './monitor/envelope.ts';
import { AlertEventType, UpstreamEventType } from './monitor/events.ts';
import type { MonitorListener } from './monitor/monitor.ts';
import type { Recorded } from './monitor/ports.ts';
import { printable } from './monitor/printable.ts';
import { isFinal, Status } from './monitor/submission.ts';
import type { Attempted } from './notify/pump.ts';

export type Log = pino.Logger;

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

export function createLog(settings: Config['log'], stream: NodeJS.WritableStream & { isTTY?: boolean }): Log {
  const pretty = settings.format === 'pretty' || (settings.format === 'auto' && stream.isTTY === true);
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
  };
  if (!pretty) return pino(options, stream);
  return pino(
    options,
    build({ destination: stream, messageKey: 'event', singleLine: true, translateTime: 'HH:MM:ss' }),
  );
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
      const event = recorded.outcome.change?.event;
      if (!event) return;
      const good = recorded.submission.status === Status.finalized || !isFinal(recorded.submission.status);
      log[good ? 'info' : 'warn'](describe(recorded), event);
    },
    upstream: ({ upstream, event, record }) => {
      const fields = { upstream, outage_ms: record.outageMs };
      if (event === UpstreamEventType.up) log.info(fields, event);
      else log.error(fields, event);
    },
    writeFailed: (error) => log.error({ err: error }, 'ledger.write_failed'),
  };
}

function logAnswer(log: Log, { observation, submission }: Recorded): void {
  if (!log.isLevelEnabled('debug')) return;
  const { kind, durationMs } = observation;
  const error = 'error' in observation && observation.error ? printable(observation.error) : undefined;
  log.debug({ submission_id: submission.submissionId, kind, duration_ms: durationMs, error }, 'poll.answered');
}

function describe({ submission, previousStatus }: Recorded): Record<string, unknown> {
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
  return ({ destination, deliveryIds, eventIds, eventType, attempt, durationMs, result, next }) => {
    const fields = {
      destination,
      delivery_id: deliveryIds[0],
      event_id: eventIds[0],
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
    const level = type === AlertEventType.resolved ? 'info' : 'warn';
    log[level]({ ...fields, since: new Date(since).toISOString() }, type);
  };
}
