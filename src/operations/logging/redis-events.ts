import { error, info, type LogEvent, warn } from './fields.ts';

const SEE_FIELD = '`advice`';

/** Redis, workers, the jobs they share, and the intake queue. */
export const REDIS_EVENTS = {
  'redis.connected': info('Redis works', ['workers']),
  'redis.disconnected': error('Redis does not work', ['reason', 'message', 'advice'], SEE_FIELD),
  'redis.eviction_policy': warn(
    'Redis would evict jobs when its memory is full',
    ['policy', 'advice'],
    SEE_FIELD,
  ),
  'redis.too_old': warn(
    'the version of Redis is too old',
    ['version', 'required_version', 'advice'],
    SEE_FIELD,
  ),
  'redis.fencing_token_lost': warn('another server took over this prefix', ['advice'], SEE_FIELD),
  'worker.started': info('a worker has started', ['worker', 'upstreams', 'version']),
  'worker.stopped': info('a worker has stopped'),
  'worker.joined': info('the server receives the first announcement of a worker', [
    'worker',
    'version',
  ]),
  'worker.left': info(
    'the announcements of a worker have ended',
    ['worker', 'version'],
    'unless the worker was stopped on purpose, read its log',
  ),
  'worker.refused': error(
    'a worker gets no jobs because its version or its `redis.secret` does not match. The server polls instead',
    ['worker', 'reason', 'advice'],
    SEE_FIELD,
  ),
  'worker.secret_mismatch': error(
    'the `redis.secret` of the server differs from that of the worker. The worker takes no jobs until they match',
    ['reason', 'advice'],
    SEE_FIELD,
  ),
  'worker.secret_matched': info(
    'the secrets match after `worker.secret_mismatch`, and the worker takes jobs',
  ),
  'polls.startup_delayed': info(
    'the server starts while jobs of its previous process may still be executed',
    ['max_delay_ms'],
  ),
  'polls.returned': warn(
    'a worker returned a job without polling. The server polls instead',
    ['upstream', 'reason', 'submissions'],
    "`reason` in the worker's log states what to change",
  ),
  'polls.job_failed': warn(
    'a job returned no usable result. Its submissions are polled again',
    ['upstream', 'reason'],
    'occasional failures are harmless. If they are frequent, read the logs of the workers',
  ),
  'polls.rejected': error(
    'a result from Redis failed verification. Its submissions are polled again',
    ['upstream', 'job_id', 'reason', 'advice'],
    SEE_FIELD,
  ),
  'polls.refused': warn(
    'a worker refused a job as invalid',
    ['reason'],
    'run the server and all workers with the same version and `redis.secret`; find other writers to Redis',
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
