import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type Job, Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { onTestFinished } from 'vitest';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { createLocalEngine, type SendPoll } from '../../../src/polling/poll-engine.ts';
import type { RedisSettings } from '../../../src/redis/connections.ts';
import { POLLS_QUEUE } from '../../../src/redis/connections.ts';
import { PROBE_MS } from '../../../src/redis/polls-queue.ts';
import { openPolls } from '../../../src/redis/queues.ts';
import { openPollWorker } from '../../../src/redis/worker.ts';
import type { Classification } from '../../../src/submissions/classify.ts';
import { until } from '../until.ts';
import type { RedisServer } from './redis-server.ts';

export const PENDING: Classification = {
  kind: 'pending',
  state: 'Pending',
  error: null,
  envelope: '{"state":"Pending","error":null,"data":null}',
  blockNumber: null,
};

/** A log, and its lines. */
export function recordLog() {
  const logged: { level: number; msg: string; [field: string]: unknown }[] = [];
  const log = pino({}, { write: (line: string) => void logged.push(JSON.parse(line)) });
  return { log, logged };
}

/** The defaults of the settings. */
const TIMEOUT_MS = 10_000;
export const LEASE_MS = 2 * TIMEOUT_MS + 10_000;

/** Redis is probed as often as the tests look. */
const QUICK_PROBE_MS = 50;

/** The server's side, closed when the test ends. `polled`: the ids that it polled itself. */
export function openEngine(
  redis: RedisSettings,
  {
    local = async () => PENDING,
    clock = systemClock,
    leaseMs = LEASE_MS,
  }: { local?: SendPoll; clock?: Clock; leaseMs?: number } = {},
) {
  const { log, logged } = recordLog();
  const polled: string[] = [];
  const sendPoll: SendPoll = (upstream, submissionId) => {
    polled.push(submissionId);
    return local(upstream, submissionId);
  };
  const { engine, link, queue, untilPreviousEnded, close } = openPolls({
    redis,
    local: createLocalEngine({ sendPoll, clock }),
    clock: {
      now: () => clock.now(),
      elapsed: () => clock.elapsed(),
      after: (ms, run) => clock.after(ms === PROBE_MS ? QUICK_PROBE_MS : ms, run),
    },
    log,
    leaseMsOf: () => leaseMs,
  });
  onTestFinished(close);
  /** Polls a batch; returns the observations. */
  async function poll(...submissionIds: string[]) {
    const observations: Parameters<Parameters<typeof engine.poll>[1]>[0][] = [];
    await engine.poll({ upstream: 'default', submissionIds }, (one) => observations.push(one));
    return observations;
  }
  return {
    ...{ engine, link, queue, untilPreviousEnded, logged, polled, close },
    poll,
    /** Polls one id again and again, until a worker has polled it. */
    pollByWorker: (id: string) =>
      until(async () => {
        const [one] = await poll(id);
        return one?.worker !== undefined && [one];
      }),
    /** Resolves when this number of workers is connected and gets the next batch. */
    sees: (workers: number, paused: readonly string[] = []) =>
      until(() => {
        const { health } = link;
        const isPaused = isDeepStrictEqual(health.paused, paused);
        return link.isUsable && health.workers.length === workers && isPaused;
      }),
    isDisconnected: () =>
      until(() => link.health.state === 'disconnected' && logged.some(({ level }) => level === 50)),
  };
}

/** The worker's side, in this process. */
export function openWorker(
  redis: RedisSettings,
  setting: { sendPoll?: SendPoll; name?: string; timeoutMs?: number; upstreams?: string[] } = {},
) {
  const {
    sendPoll = async () => PENDING,
    timeoutMs = TIMEOUT_MS,
    upstreams = ['default'],
  } = setting;
  const { log, logged } = recordLog();
  const polled: string[] = [];
  const worker = openPollWorker({
    redis,
    name: setting.name ?? `worker-${randomUUID()}`,
    engine: createLocalEngine({
      clock: systemClock,
      sendPoll: (upstream, submissionId) => {
        polled.push(submissionId);
        return sendPoll(upstream, submissionId);
      },
    }),
    timeoutMsOf: (upstream) => (upstreams.includes(upstream) ? timeoutMs : undefined),
    log,
  });
  const close = (limitMs = 2_000) => worker.close(limitMs);
  onTestFinished(() => close());
  return { polled, logged, close };
}

/** A worker with arbitrary behavior. */
export function openFakeWorker(
  { url }: Pick<RedisServer, 'url'>,
  process: (job: Job) => Promise<unknown>,
  name = 'odd',
) {
  const options = { connection: { url }, maxStalledCount: 0, concurrency: 10, name };
  const worker = new Worker(POLLS_QUEUE, process, options);
  worker.on('error', () => undefined);
  onTestFinished(() => worker.close(true));
}

/** The name of the connections with which tests inspect Redis. */
export const CLIENT_NAME = 'test';

/** A separate connection to inspect and modify Redis. */
export function openRedisClient({ url }: Pick<RedisServer, 'url'>): Redis {
  const redis = new Redis(url, { connectionName: CLIENT_NAME });
  redis.on('error', () => undefined);
  onTestFinished(() => redis.disconnect());
  return redis;
}

export function openQueue({ url }: Pick<RedisServer, 'url'>, name = POLLS_QUEUE): Queue {
  const queue = new Queue(name, { connection: { url, connectionName: CLIENT_NAME } });
  queue.on('error', () => undefined);
  onTestFinished(() => queue.close());
  return queue;
}
