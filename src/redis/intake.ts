import { DelayedError, type Job, UnrecoverableError, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { type ZodError, z } from 'zod';
import { withTimeout } from '../lib/clock.ts';
import { explainIssue } from '../lib/explain-issue.ts';
import { escapeText } from '../lib/text.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import { summaryOf, type TrackRequestResult, type TrackSummary } from '../submissions/intake.ts';
import { BODY_LIMIT_BYTES, type TrackBody, trackBodySchema } from '../submissions/track-request.ts';
import { openLoopRedis, type RedisSettings, SUBMISSIONS_QUEUE } from './connections.ts';

type IntakeDeps = {
  redis: RedisSettings;
  /** See Intake. */
  track: (body: TrackBody) => Promise<TrackRequestResult | undefined>;
  log: Log;
};

const RETRY_MS = 1_000;
const MAX_DELAY_MS = 60_000;
/** Jobs take no time; closing takes longer only if Redis does not respond. */
const CLOSE_WITHIN_MS = 2_000;
const DAY_S = 86_400;
const OPTIONS = {
  concurrency: 8,
  // A job of a crashed server is resumed after the lock.
  lockDuration: 10_000,
  stalledInterval: 5_000,
  // BullMQ never resets this counter: with a limit, so many crashes would fail a job.
  maxStalledCount: 1_000_000_000,
  runRetryDelay: RETRY_MS,
  skipVersionCheck: true,
  // Producers can read the results of their jobs for this long.
  removeOnComplete: { age: 3 * DAY_S, count: 10_000 },
  removeOnFail: { age: 14 * DAY_S, count: 10_000 },
};

/**
 * Makes a job active that would be next and is too large, and returns its id and bytes; otherwise
 * the number of jobs. BullMQ takes a delayed job in the same step in which it becomes due.
 */
const TAKE_OVERSIZED = `
  local wait, prioritized, delayed, active = unpack(KEYS)
  local prefix, now, max = unpack(ARGV)
  local ids = redis.call('LRANGE', wait, -1, -1)
  table.insert(ids, redis.call('ZRANGE', prioritized, 0, 0)[1])
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', delayed, 0, (now + 1) * 4096, 'LIMIT', 0, 1000)) do
    table.insert(ids, id)
  end
  for _, id in ipairs(ids) do
    local bytes = redis.call('HSTRLEN', prefix .. id, 'data') + redis.call('HSTRLEN', prefix .. id, 'opts')
    if bytes > tonumber(max) then
      redis.call('LREM', wait, -1, id)
      redis.call('ZREM', prioritized, id)
      redis.call('ZREM', delayed, id)
      redis.call('LPUSH', active, id)
      return { id, bytes }
    end
  end
  return redis.call('LLEN', wait) + redis.call('ZCARD', prioritized) + redis.call('ZCARD', delayed)`;

type IntakeJob = Job<unknown, TrackSummary>;

/** BullMQ's token for a job that no worker holds. */
const WITHOUT_LOCK = '0';

/** Fails jobs that are too large in Redis, because JSON takes many times its length in memory. */
function openWorker(
  redis: Redis,
  process: (job: IntakeJob, token?: string) => Promise<TrackSummary>,
  refusal: (jobId: string | undefined, reason: string) => UnrecoverableError,
): Worker<unknown, TrackSummary> {
  class BoundedWorker extends Worker<unknown, TrackSummary> {
    protected override async moveToActive(token: string, name?: string): Promise<IntakeJob> {
      const keys = ['wait', 'prioritized', 'delayed', 'active', ''].map((key) => this.toKey(key));
      const args = [...keys, Date.now(), BODY_LIMIT_BYTES];
      const found = await redis.eval(TAKE_OVERSIZED, keys.length - 1, ...args);
      // A job that arrives now is checked first.
      if (found === 0) return this.nextJobFromJobData();
      if (!Array.isArray(found)) return super.moveToActive(token, name);
      const [id, bytes] = found;
      const reason = `the job has ${bytes} bytes; at most ${BODY_LIMIT_BYTES} are accepted`;
      await new this.Job(this, '', undefined, {}, id).moveToFailed(
        refusal(id, reason),
        WITHOUT_LOCK,
      );
      return this.moveToActive(token, name);
    }

    /** Does not take the next job in the step in which this one ends, unchecked. */
    override processJob(job: IntakeJob, token: string) {
      return super.processJob(job, token, () => false);
    }
  }
  return new BoundedWorker(SUBMISSIONS_QUEUE, process, { connection: redis, ...OPTIONS });
}

/**
 * Completes a job once its submissions are on the disk; retries until the ledger can be written.
 */
export class IntakeWorker {
  readonly #deps: IntakeDeps;
  readonly #connection;
  readonly #worker;

  constructor(deps: IntakeDeps) {
    this.#deps = deps;
    this.#connection = openLoopRedis(deps.redis);
    this.#worker = openWorker(
      this.#connection.redis,
      (job, token) => this.#process(job, token),
      (jobId, reason) => this.#refusal(jobId, reason),
    );
    this.#worker.on('error', () => undefined);
  }

  /** Takes no more jobs. Unfinished jobs are resumed by the next server. */
  async close(limitMs: number): Promise<void> {
    await withTimeout(Math.min(limitMs, CLOSE_WITHIN_MS), this.#worker.close());
    this.#connection.close();
  }

  async #process(job: IntakeJob, token: string | undefined): Promise<TrackSummary> {
    const body = trackBodySchema.safeParse(job.data, { error: explainIssue });
    if (!body.success) throw this.#refusal(job.id, explain(body.error));
    let result: TrackRequestResult | undefined;
    try {
      result = await this.#deps.track(body.data);
    } catch (error) {
      throw await this.#postponed(job, token, error);
    }
    if (!result) throw await this.#postponed(job, token, new Error('too many ids are waiting'));
    switch (result.kind) {
      case 'tracked':
        return summaryOf(result.submissions);
      case 'invalid':
        throw this.#refusal(job.id, `${result.field}: ${result.reason}`);
      case 'conflict': {
        const { submissionId, reason } = result;
        throw this.#refusal(job.id, `${submissionId} ${reason}; nothing was accepted`);
      }
      default:
        return result satisfies never;
    }
  }

  /** Delays the job. A delay does not count as one of the attempts that the producer configured. */
  async #postponed(job: Job, token: string | undefined, error: unknown): Promise<DelayedError> {
    const delayMs = Math.min(RETRY_MS * 2 ** Math.max(0, job.attemptsStarted - 1), MAX_DELAY_MS);
    this.#deps.log.error(
      { job_id: job.id, retry_after_ms: delayMs, err: error },
      'intake.postponed',
    );
    await job.moveToDelayed(Date.now() + delayMs, token);
    return new DelayedError();
  }

  #refusal(jobId: string | undefined, reason: string): UnrecoverableError {
    this.#deps.log.warn({ job_id: jobId, reason: escapeText(reason) }, 'intake.refused');
    return new UnrecoverableError(reason);
  }
}

const MAX_ISSUES = 5;
/** Redis keeps the reason for two weeks, and an issue may quote all names of the data. */
const MAX_REASON_CHARS = 1_000;

function explain(error: ZodError): string {
  const lines = z.prettifyError({ issues: error.issues.slice(0, MAX_ISSUES) }).split('\n');
  const found = escapeText(lines.map((line) => line.trim()).join(' '), MAX_REASON_CHARS);
  return `the job data must be a request body of POST /v1/submissions: ${found}`;
}
