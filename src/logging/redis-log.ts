import { printable } from '../domain/text.ts';
import type { EngineEvent, Rejection } from '../engines/bullmq/engine.ts';
import type { Intake } from '../engines/bullmq/intake.ts';
import type { PollWorkerEvent } from '../engines/bullmq/poll-worker.ts';
import type { LinkEvent } from '../engines/bullmq/redis-link.ts';
import type { SignatureProblem } from '../engines/bullmq/signer.ts';
import type { RefusedWorker } from '../engines/bullmq/worker-register.ts';
import type { Log } from './logger.ts';

const ADVICE = {
  away: 'submissions are tracked and asked about as ever, from this server alone; see that Redis runs and redis.url is right',
  eviction_policy: 'a full Redis may drop jobs that nobody has done: set maxmemory-policy to noeviction',
  too_old: 'take a newer Redis',
  epoch_lost: 'if another server uses this Redis, give each a redis.prefix of its own',
  rejected:
    'see that all workers have the version and the redis.secret of this server, and who else can write to Redis',
} as const;

/** Why a worker that announces itself gets no jobs, and what to do about it. */
const REFUSED_WORKER = {
  other_format: {
    reason: 'it speaks another format: it is of another version, or no worker at all',
    advice: 'give the worker the version of this server; until then this server polls for it',
  },
  unsigned: {
    reason: 'its announcement is not signed, and this server has a redis.secret',
    advice: 'set the same redis.secret at the worker; until then this server polls for it',
  },
  no_secret: {
    reason: 'its announcement is signed, and this server has no redis.secret',
    advice: 'set the same redis.secret here, or none at the worker; until then this server polls for it',
  },
  other_secret: {
    reason: 'its announcement is signed with another redis.secret',
    advice: 'set the same redis.secret at the worker; until then this server polls for it',
  },
} as const satisfies Record<RefusedWorker['reason'], { reason: string; advice: string }>;

/** Why nothing of a result was believed. */
const REJECTED = {
  malformed: 'it is not what a worker sends',
  signature: 'it is not signed with redis.secret, or for another job',
  foreign_id: 'it names a submission that its job did not',
  implausible_time: 'its requests took longer than its job was out',
} as const satisfies Record<Rejection, string>;

/** Why a worker takes no jobs of its server. */
const SECRET_DIFFERS = {
  unsigned: 'the server has no redis.secret, and this worker has one',
  no_secret: 'the server has a redis.secret, and this worker has none',
  other_secret: 'the redis.secret of the server is another one',
} as const satisfies Record<SignatureProblem, string>;

/** What the server notices of Redis and of its workers. */
export function logRedis(log: Log): (event: LinkEvent) => void {
  return (event) => {
    switch (event.kind) {
      case 'up':
        return log.info({ workers: event.workers }, 'redis.up');
      case 'away': {
        const said = event.detail === null ? undefined : printable(event.detail);
        return log.error({ reason: event.reason, said, advice: ADVICE.away }, 'redis.away');
      }
      case 'eviction_policy':
        return log.warn({ policy: event.policy, advice: ADVICE.eviction_policy }, 'redis.eviction_policy');
      case 'too_old':
        return log.warn({ version: event.version, needed: event.needed, advice: ADVICE.too_old }, 'redis.too_old');
      case 'epoch_lost':
        return log.warn({ advice: ADVICE.epoch_lost }, 'redis.epoch_lost');
      case 'worker_seen':
      case 'worker_gone': {
        const { name, version } = event.worker;
        return log.info({ worker: name, version }, event.kind === 'worker_seen' ? 'worker.seen' : 'worker.gone');
      }
      case 'worker_refused':
        return log.error({ worker: event.worker.name, ...REFUSED_WORKER[event.worker.reason] }, 'worker.refused');
      default:
        return event satisfies never;
    }
  };
}

/** What does not go as it should with jobs that are out. */
export function logPolls(log: Log): (event: EngineEvent) => void {
  return (event) => {
    const { upstream } = event;
    switch (event.kind) {
      case 'returned':
        return log.warn({ upstream, reason: event.reason, submissions: event.submissions }, 'polls.returned');
      case 'lost':
        return log.warn({ upstream, reason: printable(event.reason) }, 'polls.lost');
      case 'rejected': {
        const fields = { upstream, job_id: event.jobId, reason: REJECTED[event.reason], advice: ADVICE.rejected };
        return log.error(fields, 'polls.rejected');
      }
      default:
        return event satisfies never;
    }
  };
}

export function logIntake(log: Log): Pick<ConstructorParameters<typeof Intake>[0], 'onRefused' | 'onPostponed'> {
  return {
    onRefused: ({ jobId, reason }) => log.warn({ job_id: jobId, reason: printable(reason) }, 'intake.refused'),
    onPostponed: ({ jobId, delayMs, error }) =>
      log.error({ job_id: jobId, retry_after_ms: delayMs, err: error }, 'intake.postponed'),
  };
}

/** Why a worker did not ask, and what to do about it. */
const RETURNED = {
  drained: 'it is being stopped',
  upstream: 'this worker has no upstream of that name: set it in its upstreams',
  timeout: 'timeout_s of that upstream is longer here than at the server: set the same',
  late: 'the job came too late to be asked in time: start more workers, or look at Redis',
  redis: 'Redis did not answer',
  emptied: 'Redis was emptied',
} as const;

/** Of `dawatch worker`. */
export function logWorker(log: Log): (event: PollWorkerEvent) => void {
  return (event) => {
    switch (event.kind) {
      case 'up':
        return log.info('redis.up');
      case 'away':
        return log.error({ said: printable(event.detail), advice: 'it is tried again for ever' }, 'redis.away');
      case 'returned':
        return log.warn({ upstream: event.upstream, reason: RETURNED[event.reason] }, 'polls.returned');
      case 'refused':
        return log.warn({ reason: event.reason }, 'polls.refused');
      case 'secret_differs': {
        const advice = 'set the same redis.secret here and at the server; until then this worker takes no jobs';
        return log.error({ reason: SECRET_DIFFERS[event.problem], advice }, 'worker.secret_differs');
      }
      case 'secret_agrees':
        return log.info('worker.secret_agrees');
      default:
        return event satisfies never;
    }
  };
}
