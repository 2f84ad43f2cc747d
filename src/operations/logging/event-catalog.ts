import {
  debug,
  error,
  eventAt,
  info,
  LOG_FIELDS,
  type LogEvent,
  type LogField,
  type LogLevel,
  warn,
} from './fields.ts';

/** Start and stop of the server, its settings, HTTP requests and the live feed. */
const HTTP_EVENTS = {
  'server.started': info('the server accepts requests', [
    'url',
    'database',
    'upstreams',
    'version',
  ]),
  'server.stopped': info('the server has stopped'),
  'http.listening': info('a listening socket is open'),
  'http.responded': debug('a response was sent', [
    'request_id',
    'traceparent',
    'address',
    'method',
    'route',
    'http_status',
    'duration_ms',
    'submission_id',
  ]),
  'auth.failed': eventAt('debug', 'warn')(
    'an authentication failed. `reason` is `malformed`, `unknown` (or revoked), `refused` (by the upstream, or not forwarded to it), `cross_origin` (the cookie of a session, from a page of another origin) or, at debug, `absent`',
    ['request_id', 'reason', 'address', 'method', 'route'],
    'find the client by `address`. If the address is your proxy, set `server.trusted_proxies`. `dawatch_authentication_failures_total` counts all failures',
  ),
  'auth.sign_in_failed': warn(
    'a person could not sign in at the provider of `oidc`. `reason` is `unavailable` (the provider cannot be reached, or is not what the settings describe), `denied` (by the provider), `invalid` (its response failed a check), `state` (unknown, expired or used before), `no_role`, `revoked` (the credential of the person) or `ledger`',
    ['request_id', 'reason', 'address', 'detail', 'err'],
    '`detail` names the cause. Check `oidc` with `dawatch doctor`; for `no_role`, compare `oidc.role_claim` and `oidc.roles` with the claims of the ID token',
  ),
  'http.shed': warn(
    'a request was refused with 503 because of overload. `reason` is `tracking` (ids waiting for the ledger) or `held_open`',
    ['request_id', 'reason', 'waiting_ids'],
    'clients retry by themselves. If it persists: reduce the load, or use a faster disk',
  ),
  'http.failed': error(
    'a request failed with 5xx because of an internal error, or its handler sent two responses',
    ['request_id', 'err'],
    '`err` names the cause: the disk, the ledger, or a defect to report',
  ),
  'http.slow_client_closed': warn(
    'a connection was closed because its client had left a response unread for the longest time while too many bytes were buffered',
    ['request_id', 'waiting_bytes'],
    'the client can retry. If it persists: find the client that requests large responses and reads them slowly',
  ),
  'http.no_response': error(
    'a request had no response long after its time limit and was refused with 503',
    ['request_id', 'method', 'route'],
    'report the defect with `method` and `route`',
  ),
  'http.library_message': eventAt(
    'debug',
    'info',
    'warn',
    'error',
  )(
    'the HTTP library logs a message of its own',
    ['request_id', 'message', 'err'],
    'report it if it recurs',
  ),
  'metrics.incomplete': error(
    'a part of the metrics could not be collected and is missing from the response',
    ['request_id', 'err'],
    '`err` names the cause',
  ),
  'users.lookup': eventAt('info', 'warn')(
    'a user lookup has ended; at warn, because the upstream failed',
    [
      'request_id',
      'address',
      'caller',
      'action',
      'result',
      'detail',
      'duration_ms',
      'upstream_message',
    ],
    'at warn: check DAWATCH_UPSTREAM_BEARER and `upstreams.default.users`',
  ),
  'feed.failed': error(
    'events could not be read for the live feed. Its clients reconnect',
    ['err'],
    '`err` names the problem of the ledger',
  ),
  'feed.slow_client_closed': warn(
    'a client of the live feed was disconnected because it read nothing for too long',
    ['seq', 'waiting_bytes'],
    'the client resumes by itself. If it recurs, the client reads too slowly',
  ),
} as const satisfies Record<string, LogEvent>;

const SUBMISSION = [
  'submission_id',
  'upstream',
  'status',
  'previous_status',
  'upstream_state',
  'error',
  'block_number',
  'block_hash',
  'tracked_ms',
  'time_to_finality_ms',
  'polls',
] as const satisfies LogField[];

const SHOW_HISTORY = '`dawatch status <id>` shows the history';

/** Changes of submissions, polls and the state of upstreams. */
const SUBMISSION_EVENTS = {
  'submissions.tracked': debug(
    'a tracking request was accepted. `submission_id` is present if the request had a single id',
    ['request_id', 'accepted', 'already_tracked', 'already_final', 'retracked', 'submission_id'],
  ),
  'submission.cancelled': info('a client cancelled the submission', [
    'request_id',
    'submission_id',
    'status',
  ]),
  'submission.updated': info('a client changed options of the submission', [
    'request_id',
    'submission_id',
    'options',
  ]),
  'submission.finalized': info('the submission is final', SUBMISSION),
  'submission.corrected': info(
    'the data of the submission changed after finality',
    SUBMISSION,
    'consumers that used the earlier data must read it again',
  ),
  'submission.contradicted': warn(
    'the chain has another block or transaction than the upstream names, or `data_hash` is not the expected one',
    [...SUBMISSION, 'chain_reason'],
    'find out whether the upstream, the node or the expected hash is wrong; `dawatch doctor` compares recent blocks',
  ),
  'submission.failing': info('the upstream reports Error, which may be temporary', SUBMISSION),
  'submission.recovered': info('the upstream no longer reports Error', SUBMISSION),
  'submission.stuck': warn(
    'the submission has been open for longer than `stuck_after_s`',
    SUBMISSION,
    SHOW_HISTORY,
  ),
  'submission.failed': warn(
    'the upstream still reports Error at the deadline',
    SUBMISSION,
    'submit the data again',
  ),
  'submission.unknown': warn(
    'the upstream has not found the submission for `unknown_grace_s`',
    SUBMISSION,
    'compare the id with the one returned by the upstream',
  ),
  'submission.rejected': warn(
    'the upstream refuses the id',
    SUBMISSION,
    'compare the id with the one returned by the upstream',
  ),
  'submission.expired': warn(
    'the deadline has passed',
    SUBMISSION,
    `${SHOW_HISTORY}; \`dawatch track --retrack\` tracks the submission again with a later deadline`,
  ),
  'poll.observed': debug(
    'a poll of a submission returned an observation. `worker` is absent if the server polled',
    ['submission_id', 'kind', 'duration_ms', 'worker', 'error'],
  ),
  'upstream.up': info('an upstream works again. `reason` is that of the outage', [
    'upstream',
    'reason',
    'outage_ms',
  ]),
  'upstream.down': error(
    'consecutive requests failed; `reason` is the last response. Only probes are sent, and deadlines are extended',
    ['upstream', 'reason'],
    'verify that the upstream runs and that its address is right. dawatch retries indefinitely',
  ),
  'upstream.unauthorized': error(
    'an upstream refuses the API key; `reason` is its response',
    ['upstream', 'reason'],
    'set a valid `api_key` of the upstream, then restart',
  ),
  'chain.connected': info(
    'a node of the chain announces finalized blocks to dawatch: at the start, and after problems',
    ['upstream', 'node', 'chain'],
  ),
  'chain.unavailable': warn(
    'no node of the chain announces finalized blocks; `reason` is the problem of one of them. Polling continues as without a chain. Each problem is logged once until a node works again',
    ['upstream', 'reason'],
    'check `upstreams.<name>.chain` with `dawatch doctor`. dawatch connects again by itself',
  ),
  'upstream.not_configured': warn(
    'the server starts and open submissions belong to an upstream that is not in the settings',
    ['upstream', 'submissions'],
    'add the upstream under `upstreams`, or cancel the submissions',
  ),
  'listener.failed': error(
    'an internal listener of the watcher, such as the statistics, failed. Recording and polling continue',
    ['err'],
    'report the defect with `err`',
  ),
} as const satisfies Record<string, LogEvent>;

const CHECK_DISK = 'free disk space, or find the process that locks the file';

/** The ledger and its maintenance. */
const LEDGER_EVENTS = {
  'ledger.write_failed': error(
    'observations could not be written, or open submissions could not be read at startup. The operation is retried; while the ledger cannot be used, each cause is logged once',
    ['err'],
    CHECK_DISK,
  ),
  'ledger.continued': warn(
    'the server starts with a copy of a ledger that another server served before: a restored replica or backup. It continues the ledger as the next generation',
    ['generation'],
    'make sure that the other server never runs again: `docs/failover.md`',
  ),
  'ledger.pruned': info('expired rows were deleted (`retention`, `deliveries.keep_s`)', [
    'submissions',
    'events',
    'deliveries',
  ]),
  'ledger.sync_failed': error(
    'the disk failed to sync committed data. The server exits with 5; data that was not acknowledged may be lost. The next start copies the ledger',
    ['err'],
    'check the system log for disk errors, replace the disk, and start the server',
  ),
  'ledger.recovering': warn(
    'the server starts after a failed sync: it copies the ledger to a new file, verifies it, and replaces the ledger by it',
    [],
    'check the system log for disk errors',
  ),
  'ledger.maintenance_failed': error(
    'the ledger could not be pruned or shrunk, or its write-ahead log could not be shortened. The operation is retried',
    ['err'],
    CHECK_DISK,
  ),
} as const satisfies Record<string, LogEvent>;

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
const NOTIFICATION_EVENTS = {
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
  'log.suppressed': warn(
    'a minute has ended in which lines of an event were suppressed, because it was repeated too often',
    ['suppressed_event', 'suppressed'],
    'see the lines of the event before this one',
  ),
} as const satisfies Record<string, LogEvent>;

const SEE_FIELD = '`advice`';

/** Redis, workers, the jobs they share, and the intake queue. */
const REDIS_EVENTS = {
  'redis.connected': info('Redis works', ['workers']),
  'redis.disconnected': error('Redis does not work', ['message', 'advice'], SEE_FIELD),
  'worker.started': info('a worker has started', ['worker', 'upstreams', 'version']),
  'worker.stopped': info('a worker has stopped'),
  'worker.joined': info('a worker has connected to Redis', ['worker']),
  'worker.left': info(
    'a worker is no longer connected to Redis',
    ['worker'],
    'unless the worker was stopped on purpose, read its log',
  ),
  'polls.startup_delayed': info(
    'the server starts while jobs of its previous process may still be executed',
    ['max_delay_ms'],
  ),
  'polls.job_failed': warn(
    'a job returned no usable result. Its submissions are polled again',
    ['upstream', 'reason'],
    'occasional failures are harmless. If they are frequent, read the logs of the workers',
  ),
  'polls.refused': warn(
    'a worker has not polled a job. The server polls its submissions again',
    ['upstream', 'reason'],
    'if it is frequent, do what `reason` states',
  ),
  'intake.refused': warn(
    'a job of `dawatch-submissions` is invalid and is kept as failed',
    ['job_id', 'reason'],
    'fix the producer: docs/queues.md',
  ),
  'intake.postponed': error(
    'a job of `dawatch-submissions` could not be processed and will be retried',
    ['job_id', 'retry_after_ms', 'err'],
    '`err` names the problem of the ledger',
  ),
} as const satisfies Record<string, LogEvent>;

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
