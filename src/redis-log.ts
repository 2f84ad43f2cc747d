import type { EngineEvent } from './engines/bullmq.ts';
import type { Intake } from './engines/intake.ts';
import type { PollWorkerEvent } from './engines/poll-worker.ts';
import type { LinkEvent } from './engines/redis-link.ts';
import type { Log } from './log.ts';
import { printable } from './monitor/printable.ts';

const ADVICE = {
  away: 'submissions are tracked and asked about as ever, from this server alone; see that Redis runs and redis.url is right',
  eviction_policy: 'a full Redis may drop jobs that nobody has done: set maxmemory-policy to noeviction',
  too_old: 'take a newer Redis',
  epoch_lost: 'if another server uses this Redis, give each a redis.prefix of its own',
} as const;

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
      default:
        return event satisfies never;
    }
  };
}

/** What does not go as it should with jobs that are out. */
export function logPolls(log: Log): (event: EngineEvent) => void {
  return ({ kind, ...fields }) => log.warn(fields, kind === 'returned' ? 'polls.returned' : 'polls.lost');
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
      default:
        return event satisfies never;
    }
  };
}
