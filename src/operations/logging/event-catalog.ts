/** Every log event by its name, and what a line of it says. docs/logs.md lists them. */
export const LOG_EVENTS = {
  'server.started': 'the server accepts requests',
  'server.stopped': 'the server has stopped',
  'clock.stepped':
    'the clock was set by `step_s` seconds, forward or back, or the machine slept ([the clock](troubleshooting.md#the-clock))',
  'clock.behind':
    'the server starts more than a day (`behind_s`) before the newest change in its ledger: the clock is wrong, or was',
  'http.listening': 'a listening socket is open',
  'http.responded': 'a response was sent',
  'auth.failed':
    'an authentication failed: `reason` is `malformed`, `unknown` (or revoked), `refused` by the upstream, `cross_origin`, or `absent`',
  'auth.sign_in_failed':
    'a person could not sign in at the provider of `oidc`; `reason` and `detail` name the cause',
  'http.shed':
    'a request was refused with 503 because of overload: too many ids wait for the ledger (`tracking`), or too many requests are `held_open`',
  'http.failed':
    'a request failed with 5xx because of an internal error, or its handler sent two responses',
  'http.slow_client_closed':
    'too many bytes waited for slow clients, and the connection whose response had waited longest was closed',
  'http.no_response':
    'a request had no response long after its time limit and was refused with 503',
  'http.library_message': 'the HTTP library logs a message of its own',
  'metrics.incomplete':
    'a part of the metrics could not be collected and is missing from the response',
  'users.lookup': 'a user lookup has ended; at warn, because the upstream failed',
  'feed.failed': 'events could not be read for the live feed, and its clients reconnect',
  'feed.slow_client_closed':
    'a client of the live feed was disconnected because it read nothing for too long',
  'submission.cancelled': 'a client cancelled the submission',
  'submission.updated': 'a client changed options of the submission',
  'submission.finalized': 'the submission is final',
  'submission.corrected':
    'the data of the submission changed after finality, or the upstream no longer finds it',
  'submission.contradicted':
    'the chain has another block or transaction than the upstream names, or `data_hash` is not the expected one',
  'submission.failing': 'the upstream reports Error, which may be temporary',
  'submission.recovered': 'the upstream no longer reports Error',
  'submission.stuck': 'the submission has been open for longer than `stuck_after_s`',
  'submission.failed': 'the upstream still reports Error at the deadline',
  'submission.unknown': 'the upstream has not found the submission for `unknown_grace_s`',
  'submission.rejected': 'the upstream refuses the id',
  'submission.expired': 'the deadline has passed',
  'poll.observed': 'a poll returned an observation; `worker` is absent if the server polled',
  'upstream.up': 'an upstream works again; `reason` is that of the outage',
  'upstream.down':
    'consecutive requests failed, and only probes are sent; `reason` is the last response',
  'upstream.unauthorized': 'an upstream refuses the API key; `reason` is its response',
  'upstream.paused':
    'an upstream asked for no requests for more than 30 s, with 429 or Retry-After; pauses that follow each other are one line',
  'chain.connected':
    'a node of the chain announces finalized blocks: at the start, and after problems',
  'chain.unavailable':
    'the connection to a node of the chain failed; without another node, polling continues as without a chain',
  'upstream.not_configured':
    'the server starts and open submissions belong to an upstream that is not in the settings',
  'listener.failed': 'an internal listener, such as the statistics, failed; report this defect',
  'ledger.write_failed':
    'observations could not be written or submissions not read, which is retried; each cause is logged once',
  'ledger.continued':
    'the server continues a restored replica or backup; the other server must never run again ([failover](failover.md))',
  'ledger.pruned': 'expired rows were deleted (`retention`, deliveries after 30 days)',
  'ledger.sync_failed':
    'the disk failed to sync committed data; the server exits with 5, and the next start copies the ledger',
  'ledger.recovering':
    'the server starts after a failed sync: it copies the ledger to a new file and verifies it',
  'ledger.detached':
    'the file of the ledger, or its log, was removed or replaced: nothing is written any more, and `copy` has the data ([what to do](troubleshooting.md#the-ledger))',
  'ledger.maintenance_failed': 'the ledger could not be pruned or shrunk, which is retried',
  'delivery.delivered': 'a receiver accepted the delivery; at warn, not for all recipients',
  'delivery.failed': 'an attempt failed, and `next_at` is the time of the next one',
  'delivery.dead': 'the delivery became a dead letter',
  'dispatcher.failed':
    'pending deliveries could not be read, or results not be written, which is retried',
  'alert.raised': 'an alert begins ([notifications](notifications.md#alerts))',
  'alert.resolved': 'an alert has ended',
  'heartbeat.failed':
    'the address of the heartbeat did not accept a call; logged once, and calls continue',
  'heartbeat.withheld':
    'no heartbeat is sent, because this server does not work; `reason` says why',
  'heartbeat.resumed': 'a heartbeat was accepted after others were not',
  'log.suppressed': 'a minute has ended in which `suppressed` lines of an event were not written',
  'redis.connected': 'Redis works',
  'redis.disconnected': 'Redis does not work; `advice` says what to do',
  'worker.started': 'a worker has started',
  'worker.stopped': 'a worker has stopped',
  'worker.joined': 'a worker has connected to Redis',
  'worker.left': 'a worker is no longer connected to Redis',
  'polls.startup_delayed':
    'the server starts while jobs of its previous process may still be executed',
  'polls.job_failed': 'a job returned no usable result, and its submissions are polled again',
  'polls.refused': 'a worker has not polled a job, and the server polls its submissions again',
  'intake.refused':
    'a job of `dawatch-submissions` is invalid and is kept as failed ([queues](queues.md))',
  'intake.postponed': 'a job of `dawatch-submissions` could not be processed and will be retried',
} as const;

export type LogEventName = keyof typeof LOG_EVENTS;
type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** Writes log lines. Accepts only the names of LOG_EVENTS. */
export type Log = {
  readonly [L in LogLevel]: {
    (fields: object, event: LogEventName): void;
    (event: LogEventName): void;
  };
} & { isLevelEnabled(level: LogLevel): boolean };
