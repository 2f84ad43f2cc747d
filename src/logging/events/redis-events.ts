import type { LogEvent } from './fields.ts';

const SEE_FIELD = '`advice`';

/** Redis, workers, the jobs they share, and the intake queue. */
export const REDIS_EVENTS = {
  'redis.connected': { levels: ['info'], when: 'Redis works', fields: ['workers'] },
  'redis.disconnected': {
    levels: ['error'],
    when: 'Redis does not work',
    fields: ['reason', 'message', 'advice'],
    advice: SEE_FIELD,
  },
  'redis.eviction_policy': {
    levels: ['warn'],
    when: 'Redis would evict jobs when its memory is full',
    fields: ['policy', 'advice'],
    advice: SEE_FIELD,
  },
  'redis.too_old': {
    levels: ['warn'],
    when: 'the version of Redis is too old',
    fields: ['version', 'required_version', 'advice'],
    advice: SEE_FIELD,
  },
  'redis.fencing_token_lost': {
    levels: ['warn'],
    when: 'another server took over this prefix',
    fields: ['advice'],
    advice: SEE_FIELD,
  },
  'worker.started': {
    levels: ['info'],
    when: 'a worker has started',
    fields: ['worker', 'upstreams', 'version'],
  },
  'worker.stopped': { levels: ['info'], when: 'a worker has stopped', fields: [] },
  'worker.joined': {
    levels: ['info'],
    when: 'the server receives the first announcement of a worker',
    fields: ['worker', 'version'],
  },
  'worker.left': {
    levels: ['info'],
    when: 'the announcements of a worker have ended',
    fields: ['worker', 'version'],
    advice: 'unless the worker was stopped on purpose, read its log',
  },
  'worker.refused': {
    levels: ['error'],
    when: 'a worker gets no jobs because its version or its `redis.secret` does not match. The server polls instead',
    fields: ['worker', 'reason', 'advice'],
    advice: SEE_FIELD,
  },
  'worker.secret_mismatch': {
    levels: ['error'],
    when: 'the `redis.secret` of the server differs from that of the worker. The worker takes no jobs until they match',
    fields: ['reason', 'advice'],
    advice: SEE_FIELD,
  },
  'worker.secret_matched': {
    levels: ['info'],
    when: 'the secrets match after `worker.secret_mismatch`, and the worker takes jobs',
    fields: [],
  },
  'polls.startup_delayed': {
    levels: ['info'],
    when: 'the server starts while jobs of its previous process may still be executed',
    fields: ['max_delay_ms'],
  },
  'polls.returned': {
    levels: ['warn'],
    when: 'a worker returned a job without polling. The server polls instead',
    fields: ['upstream', 'reason', 'submissions'],
    advice: "`reason` in the worker's log states what to change",
  },
  'polls.job_failed': {
    levels: ['warn'],
    when: 'a job returned no usable result. Its submissions are polled again',
    fields: ['upstream', 'reason'],
    advice: 'occasional failures are harmless. If they are frequent, read the logs of the workers',
  },
  'polls.rejected': {
    levels: ['error'],
    when: 'a result from Redis failed verification. Its submissions are polled again',
    fields: ['upstream', 'job_id', 'reason', 'advice'],
    advice: SEE_FIELD,
  },
  'polls.refused': {
    levels: ['warn'],
    when: 'a worker refused a job as invalid',
    fields: ['reason'],
    advice: 'run the server and all workers with the same version and `redis.secret`; find other writers to Redis',
  },
  'intake.refused': {
    levels: ['warn'],
    when: 'a job of `dawatch-submissions` is invalid and is kept as failed',
    fields: ['job_id', 'reason'],
    advice: 'fix the producer: docs/queues.md',
  },
  'intake.postponed': {
    levels: ['error'],
    when: 'a job of `dawatch-submissions` could not be processed and will be retried',
    fields: ['job_id', 'retry_after_ms', 'err'],
    advice: '`err` names the problem of the ledger',
  },
} as const satisfies Record<string, LogEvent>;
