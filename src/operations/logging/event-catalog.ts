/** Every log event by its name, and what a line of it says. docs/observability.md lists them. */
export const LOG_EVENTS = {
  'server.started': 'the server accepts requests',
  'server.stopped': 'the server has stopped',
  'clock.stepped':
    'the clock jumped by `step_s`, or the machine slept ([the clock](troubleshooting.md#the-clock))',
  'clock.behind': 'the clock is `behind_s` behind the newest change in the ledger',
  'http.listening': 'a socket is open',
  'http.responded': 'a response was sent',
  'auth.failed':
    '`reason`: `malformed`, `unknown` (or revoked), `refused` by the upstream, `cross_origin`, `absent`',
  'auth.sign_in_failed': 'a sign-in failed at the provider of `oidc`: `reason`, `detail`',
  'http.shed': '503: too many ids wait (`tracking`), or requests are `held_open`',
  'http.failed': 'an internal error caused a 5xx',
  'http.slow_client_closed': 'the slowest client was disconnected',
  'http.no_response': 'a request exceeded its time limit: 503',
  'http.library_message': 'a message of the HTTP library',
  'metrics.incomplete': 'a part of the metrics could not be read',
  'users.lookup': 'a user lookup has ended; at warn: the upstream failed',
  'feed.failed': 'the live feed could not read events',
  'feed.slow_client_closed': 'a client of the live feed read nothing',
  'submission.cancelled': 'by a client',
  'submission.updated': 'a client changed options',
  'submission.finalized': 'the submission is final',
  'submission.corrected': 'the data changed or disappeared after finality',
  'submission.contradicted': 'the chain has another block, transaction or data hash',
  'submission.failing': 'the upstream reports Error, which may be temporary',
  'submission.recovered': 'the upstream no longer reports Error',
  'submission.stuck': 'open for longer than `stuck_after_s`',
  'submission.failed': 'still Error at the deadline',
  'submission.unknown': 'not found for `unknown_grace_s`',
  'submission.rejected': 'the upstream refuses the id',
  'submission.expired': 'the deadline has passed',
  'poll.observed': 'a poll has ended; `worker` is absent if the server polled',
  'upstream.up': 'works again; `reason` of the outage',
  'upstream.down': 'only probes are sent; `reason` is the last response',
  'upstream.unauthorized': 'the API key is refused',
  'upstream.paused': '429 or Retry-After of more than 30 s',
  'chain.connected': 'a node announces finalized blocks',
  'chain.unavailable': 'a node failed',
  'upstream.not_configured': 'open submissions have an upstream without settings',
  'listener.failed': 'an internal listener failed: report this defect',
  'ledger.write_failed': 'the ledger could not be written or read; retried',
  'ledger.continued':
    'a restored ledger continues; never start the other server ([failover](backup.md#failover))',
  'ledger.pruned': 'expired rows were deleted',
  'ledger.sync_failed':
    'the disk failed to sync; exit code 5, and the next start copies the ledger',
  'ledger.recovering': 'after a failed sync, the ledger is copied and verified',
  'ledger.detached':
    'the ledger file or its log was removed or replaced; `copy` has the data ([what to do](troubleshooting.md#the-ledger))',
  'ledger.maintenance_failed': 'pruning or shrinking failed; retried',
  'delivery.delivered': 'a receiver accepted; at warn: not for all recipients',
  'delivery.failed': 'an attempt failed; the next is at `next_at`',
  'delivery.dead': 'the delivery became a dead letter',
  'dispatcher.failed': 'deliveries could not be read or written; retried',
  'alert.raised': 'an alert begins ([alerts](notifications.md#alerts))',
  'alert.resolved': 'an alert has ended',
  'heartbeat.failed': 'the heartbeat address refused a call; calls continue',
  'heartbeat.withheld': '`reason`: this server does not work',
  'heartbeat.resumed': 'a heartbeat was accepted again',
  'log.suppressed': '`suppressed` lines of an event were omitted',
  'redis.connected': 'Redis works',
  'redis.disconnected': 'Redis does not work; follow `advice`',
  'worker.started': 'a worker has started',
  'worker.stopped': 'a worker has stopped',
  'worker.joined': 'a worker has connected to Redis',
  'worker.left': 'a worker has left Redis',
  'polls.startup_delayed': 'polls wait: jobs of the previous process may still run',
  'polls.job_failed': 'a job returned no usable result; its ids are polled again',
  'polls.refused': 'a worker refused a job; its ids are polled again',
  'intake.refused':
    'a job of `dawatch-submissions` is invalid, and kept as failed ([queues](queues.md))',
  'intake.postponed': 'a job of `dawatch-submissions` will be retried',
} as const;

export type LogEventName = keyof typeof LOG_EVENTS;
type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export type Log = {
  readonly [L in LogLevel]: {
    (fields: object, event: LogEventName): void;
    (event: LogEventName): void;
  };
} & { isLevelEnabled(level: LogLevel): boolean };
