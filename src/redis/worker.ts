import { type Job, UnrecoverableError, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { type Clock, withTimeout } from '../lib/clock.ts';
import { escapeText } from '../lib/text.ts';
import { StartError } from '../operations/config/start-error.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import { createLocalEngine, type PollEngine } from '../polling/poll-engine.ts';
import { openUpstreams, timeoutMsOf } from '../polling/upstreams.ts';
import { openLoopRedis, POLLS_QUEUE, type RedisSettings, readServer } from './connections.ts';
import type { PollJob, PollResult } from './polls-queue.ts';
import type { WorkerSettings } from './settings.ts';

/** As long as a server waits for requests in flight. */
const SHUTDOWN_MS = 15_000;

/** Starts `dawatch worker`: a poll worker for the server at the same Redis. Throws StartError. */
export function startWorker(deps: {
  config: WorkerSettings;
  log: Log;
  clock: Clock;
  version: string;
  name: string;
}): { close(): Promise<void> } {
  const { config, log, clock, version, name } = deps;
  const { url } = config.redis;
  if (url === undefined)
    throw new StartError(
      'a worker requires the Redis of its server: set DAWATCH_REDIS_URL or redis.url',
    );
  const upstreams = openUpstreams(config, { clock, version });
  const timeouts = new Map(upstreams.named.map(([one, upstream]) => [one, timeoutMsOf(upstream)]));
  const worker = openPollWorker({
    redis: { url },
    engine: createLocalEngine({ sendPoll: upstreams.sendPoll, clock }),
    timeoutMsOf: (upstream) => timeouts.get(upstream),
    name,
    log,
  });
  log.info({ worker: name, upstreams: upstreams.names, version }, 'worker.started');
  return {
    async close() {
      await worker.close(SHUTDOWN_MS);
      await upstreams.close();
      log.info('worker.stopped');
    },
  };
}

/** No request starts later than the request timeout plus this before the job expires. */
const START_MARGIN_MS = 250;
const RETRY_MS = 1_000;
const CLOSE_WITHIN_MS = 1_000;
/** Jobs at a time. The request budgets bound the polls; this bounds the memory. */
const CONCURRENCY = 100;

/** `timeoutMsOf`: undefined if the worker has no such upstream. Throws StartError. */
export function openPollWorker(deps: {
  redis: RedisSettings;
  engine: PollEngine;
  timeoutMsOf: (upstream: string) => number | undefined;
  /** Unique among all workers. */
  name: string;
  log: Log;
}) {
  const { engine, timeoutMsOf, name, log } = deps;
  const connection = openLoopRedis(deps.redis);
  const { redis } = connection;

  async function process({ data }: Job<PollJob>): Promise<PollResult> {
    const problem = await reasonNotToPoll(redis, data, timeoutMsOf(data.upstream));
    if (problem !== undefined) {
      log.warn({ upstream: data.upstream, reason: problem }, 'polls.refused');
      throw new UnrecoverableError(`${name}: ${problem}`);
    }
    const observations: PollResult['observations'] = [];
    const { upstream, submission_ids: submissionIds } = data;
    await engine.poll({ upstream, submissionIds }, ({ at: _, ...one }) => observations.push(one));
    return { worker: name, observations };
  }

  const worker = new Worker<PollJob, PollResult>(POLLS_QUEUE, process, {
    connection: redis,
    name,
    concurrency: CONCURRENCY,
    // A stalled job may have been polled: it fails, and the server polls its ids again.
    maxStalledCount: 0,
    runRetryDelay: RETRY_MS,
    skipVersionCheck: true,
  });
  // BullMQ retries without end, and reports each attempt: errors of the network, and of permissions
  // that are missing.
  let isReported = false;
  worker.on('error', ({ message }) => {
    if (isReported) return;
    isReported = true;
    const advice = 'the worker reconnects indefinitely';
    log.error({ message: escapeText(message), advice }, 'redis.disconnected');
  });
  redis.on('ready', () => {
    isReported = false;
    log.info('redis.connected');
  });

  return {
    /** Takes no more jobs and waits up to `limitMs` for those in progress. Idempotent. */
    async close(limitMs: number): Promise<void> {
      // Without Redis there is nobody to send results to, and BullMQ would wait for it.
      const isConnected = redis.status === 'ready';
      await withTimeout(isConnected ? limitMs : CLOSE_WITHIN_MS, worker.close());
      connection.close();
    },
  };
}

/** Returns why a job must not be polled now; undefined: its requests end before it expires. */
async function reasonNotToPoll(
  redis: Redis,
  { upstream, expires_at, run_id }: PollJob,
  timeoutMs: number | undefined,
): Promise<string | undefined> {
  if (timeoutMs === undefined) return `this worker has no upstream ${upstream}`;
  const readAt = performance.now();
  const { runId, nowMs } = await readServer(redis);
  if (runId !== run_id) return 'Redis has restarted since the job was added';
  // Redis read its clock after `readAt`, so it cannot show a later time than this now.
  const latestNow = nowMs + performance.now() - readAt;
  if (latestNow > expires_at - timeoutMs - START_MARGIN_MS)
    return 'the job came too late: start more workers, or set timeout_s as on the server';
  return undefined;
}
