import { escapeText } from '../lib/text.ts';
import type { Log } from '../operations/logging/logger.ts';
import type { EngineEvent, Rejection } from './engine.ts';
import type { Intake } from './intake.ts';
import type { PollWorkerEvent } from './poll-worker.ts';
import type { DisconnectReason, LinkEvent } from './redis-link.ts';
import type { SignatureProblem } from './signer.ts';
import type { RefusedWorker } from './worker-registry.ts';

const ADVICE = {
  eviction_policy:
    'Redis may evict pending jobs when its memory is full: set maxmemory-policy to noeviction',
  too_old: 'upgrade Redis',
  fencing_token_lost: 'if several servers use this Redis, set a different redis.prefix for each',
  rejected:
    'run all workers with the version and the redis.secret of this server; find other writers to Redis',
} as const;

/** Instructions for each problem of Redis. */
const DISCONNECTED = {
  unreachable: 'verify that Redis runs and that redis.url is right',
  no_response: 'verify that Redis runs and that redis.url is right',
  refused:
    'verify the user, its password and its permissions (docs/queues.md), and that Redis accepts writes',
  cluster: 'use a single Redis, or a primary with replicas and Sentinels',
} as const satisfies Record<DisconnectReason, string>;

/** Why an announced worker gets no jobs, and how to resolve it. */
const REFUSED_WORKER = {
  other_format: {
    reason: 'its announcement has another format: it runs another version, or is not a worker',
    advice: 'run the worker with the version of this server; until then this server polls instead',
  },
  unsigned: {
    reason: 'its announcement is unsigned, and this server has a redis.secret',
    advice: 'set the same redis.secret on the worker; until then this server polls instead',
  },
  no_secret: {
    reason: 'its announcement is signed, and this server has no redis.secret',
    advice:
      'set the same redis.secret on this server, or none on the worker; until then this server polls instead',
  },
  other_secret: {
    reason: 'its announcement is signed with another redis.secret',
    advice: 'set the same redis.secret on the worker; until then this server polls instead',
  },
} as const satisfies Record<RefusedWorker['reason'], { reason: string; advice: string }>;

/** Why a result was rejected. */
const REJECTED = {
  malformed: 'the result has an invalid format',
  signature: 'the result is not signed with redis.secret, or is signed for another job',
  foreign_id: 'the result contains a submission that is not part of its job',
  implausible_time: 'the reported request durations exceed the duration of the job',
} as const satisfies Record<Rejection, string>;

/** Why a worker takes no jobs of its server. */
const SECRET_MISMATCH = {
  unsigned: 'the server has no redis.secret, and this worker has one',
  no_secret: 'the server has a redis.secret, and this worker has none',
  other_secret: 'the server has another redis.secret',
} as const satisfies Record<SignatureProblem, string>;

/** Returns a listener that logs the state of Redis and of workers, as seen by the server. */
export function logRedis(log: Log): (event: LinkEvent) => void {
  return (event) => {
    switch (event.kind) {
      case 'connected':
        return log.info({ workers: event.workers }, 'redis.connected');
      case 'disconnected': {
        const message = event.detail === null ? undefined : escapeText(event.detail);
        const advice = `this server polls all submissions by itself meanwhile; ${DISCONNECTED[event.reason]}`;
        return log.error({ reason: event.reason, message, advice }, 'redis.disconnected');
      }
      case 'eviction_policy':
        return log.warn(
          { policy: event.policy, advice: ADVICE.eviction_policy },
          'redis.eviction_policy',
        );
      case 'too_old':
        return log.warn(
          { version: event.version, required_version: event.needed, advice: ADVICE.too_old },
          'redis.too_old',
        );
      case 'fencing_token_lost':
        return log.warn({ advice: ADVICE.fencing_token_lost }, 'redis.fencing_token_lost');
      case 'worker_joined':
      case 'worker_left': {
        const { name, version } = event.worker;
        return log.info(
          { worker: name, version },
          event.kind === 'worker_joined' ? 'worker.joined' : 'worker.left',
        );
      }
      case 'worker_refused':
        return log.error(
          { worker: event.worker.name, ...REFUSED_WORKER[event.worker.reason] },
          'worker.refused',
        );
      default:
        return event satisfies never;
    }
  };
}

/** Returns a listener that logs jobs without a usable result. */
export function logPolls(log: Log): (event: EngineEvent) => void {
  return (event) => {
    const { upstream } = event;
    switch (event.kind) {
      case 'returned':
        return log.warn(
          { upstream, reason: event.reason, submissions: event.submissions },
          'polls.returned',
        );
      case 'job_failed':
        return log.warn({ upstream, reason: escapeText(event.reason) }, 'polls.job_failed');
      case 'rejected': {
        const fields = {
          upstream,
          job_id: event.jobId,
          reason: REJECTED[event.reason],
          advice: ADVICE.rejected,
        };
        return log.error(fields, 'polls.rejected');
      }
      default:
        return event satisfies never;
    }
  };
}

/** Returns the listeners that log refused and postponed jobs of the intake queue. */
export function logIntake(
  log: Log,
): Pick<ConstructorParameters<typeof Intake>[0], 'onRefused' | 'onPostponed'> {
  return {
    onRefused: ({ jobId, reason }) =>
      log.warn({ job_id: jobId, reason: escapeText(reason) }, 'intake.refused'),
    onPostponed: ({ jobId, delayMs, error }) =>
      log.error({ job_id: jobId, retry_after_ms: delayMs, err: error }, 'intake.postponed'),
  };
}

/** Why a worker returned a job without polling, and how to resolve it. */
const RETURNED = {
  drained: 'the worker is stopping',
  upstream: 'this worker has no upstream of that name: add it to its upstreams',
  timeout:
    'timeout_s of this upstream is longer on the worker than on the server: set the same value',
  late: 'the job arrived too late to be polled in time: start more workers, or check Redis',
  redis: 'Redis did not respond',
  emptied: 'the data in Redis was deleted',
} as const;

/** Returns a listener that logs the state of Redis and the jobs of `dawatch worker`. */
export function logWorker(log: Log): (event: PollWorkerEvent) => void {
  return (event) => {
    switch (event.kind) {
      case 'connected':
        return log.info('redis.connected');
      case 'disconnected':
        return log.error(
          { message: escapeText(event.detail), advice: 'the worker reconnects indefinitely' },
          'redis.disconnected',
        );
      case 'returned':
        return log.warn(
          { upstream: event.upstream, reason: RETURNED[event.reason] },
          'polls.returned',
        );
      case 'refused':
        return log.warn({ reason: event.reason }, 'polls.refused');
      case 'secret_mismatch': {
        const advice =
          'set the same redis.secret on this worker and on the server; until then this worker takes no jobs';
        return log.error(
          { reason: SECRET_MISMATCH[event.problem], advice },
          'worker.secret_mismatch',
        );
      }
      case 'secret_matched':
        return log.info('worker.secret_matched');
      default:
        return event satisfies never;
    }
  };
}
