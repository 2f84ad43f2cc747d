import { randomUUID } from 'node:crypto';
import { type Job, Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { onTestFinished, vi } from 'vitest';
import type { Clock } from '../../../src/lib/clock.ts';
import { systemClock } from '../../../src/lib/system-clock.ts';
import { createLocalEngine, type SendPoll } from '../../../src/polling/upstreams.ts';
import { BullmqEngine, type EngineEvent } from '../../../src/redis/engine.ts';
import { MessageSigner, POLLS_QUEUE } from '../../../src/redis/messages.ts';
import { PollWorker, type PollWorkerEvent } from '../../../src/redis/poll-worker.ts';
import type { RedisAddress } from '../../../src/redis/redis.ts';
import { type LinkEvent, RedisLink } from '../../../src/redis/redis-link.ts';
import { WorkerRegistry } from '../../../src/redis/worker-registry.ts';
import type { Classification } from '../../../src/submissions/classify.ts';
import type { PollEngine } from '../../../src/submissions/ports.ts';
import type { RedisServer } from './redis-server.ts';

export const PENDING = {
  kind: 'pending',
  state: 'Pending',
  error: null,
  envelope: '{"state":"Pending","error":null,"data":null}',
  blockNumber: null,
} as const satisfies Classification;

/** The server's side, closed when the test ends. */
export function openEngine(
  redis: RedisAddress,
  setting: {
    local?: PollEngine | SendPoll;
    leaseMs?: number;
    timeoutMs?: number;
    prefix?: string;
    secret?: string;
  } = {},
) {
  const {
    local = async () => PENDING,
    leaseMs = 5_000,
    timeoutMs = 1_000,
    prefix = 'bull',
    secret,
  } = setting;
  const signer = new MessageSigner(secret);
  const events: (LinkEvent | EngineEvent)[] = [];
  const settings = { ...redis, prefix };
  const onEvent = (event: LinkEvent | EngineEvent) => void events.push(event);
  const link = new RedisLink({ redis: settings, signer, clock: systemClock, onEvent });
  const engine = new BullmqEngine({
    redis: settings,
    link,
    signer,
    local:
      typeof local === 'function'
        ? createLocalEngine({ sendPoll: local, clock: systemClock })
        : local,
    clock: systemClock,
    leaseMsOf: () => leaseMs,
    timeoutMsOf: () => timeoutMs,
    onEvent,
  });
  const close = async () => {
    await engine.close();
    await link.close();
  };
  onTestFinished(close);
  return {
    engine,
    link,
    events,
    close,
    /** Resolves when this number of workers is registered and gets the next batch. */
    sees: (workers: number) =>
      vi.waitFor(() => {
        if (link.usable?.workers.length !== workers || !engine.isReading)
          throw new Error('not yet');
      }, 10_000),
    isUp: () => vi.waitUntil(() => link.health.state === 'up', 15_000),
    isDisconnected: () => vi.waitUntil(() => link.health.state === 'disconnected', 15_000),
  };
}

/** The worker's side, in this process. */
export function openWorker(
  redis: RedisAddress,
  setting: {
    sendPoll?: SendPoll;
    name?: string;
    timeoutMs?: number;
    upstreams?: string[];
    prefix?: string;
    secret?: string;
    clock?: Clock;
  } = {},
) {
  const {
    sendPoll = async () => PENDING,
    timeoutMs = 1_000,
    upstreams = ['default'],
    prefix = 'bull',
  } = setting;
  const polled: string[] = [];
  const events: PollWorkerEvent[] = [];
  const worker = new PollWorker({
    redis: { ...redis, prefix },
    signer: new MessageSigner(setting.secret),
    name: setting.name ?? `worker-${randomUUID()}`,
    version: '0.0.0-test',
    concurrency: 16,
    clock: setting.clock ?? systemClock,
    sendPoll: (upstream, submissionId) => {
      polled.push(submissionId);
      return sendPoll(upstream, submissionId);
    },
    timeoutMsOf: (upstream) => (upstreams.includes(upstream) ? timeoutMs : undefined),
    onEvent: (event) => events.push(event),
  });
  const close = (limitMs = 2_000) => worker.close(limitMs);
  onTestFinished(() => close());
  return { worker, polled, events, close };
}

/** A worker with arbitrary behavior, registered for the duration of a test. */
export async function openFakeWorker(
  redis: Pick<RedisServer, 'url'>,
  process: (job: Job) => Promise<unknown>,
  name = 'odd',
  secret?: string,
) {
  const { url } = redis;
  const register = new WorkerRegistry(openRedisClient(redis), { prefix: 'bull' });
  const announce = () =>
    register.announce(
      { name, version: '9.9.9', in_flight: 0, concurrency: 1 },
      new MessageSigner(secret),
    );
  await announce();
  const timer = setInterval(() => void announce().catch(() => undefined), 1_000);
  const worker = new Worker(POLLS_QUEUE, process, {
    connection: { url },
    maxStalledCount: 0,
    concurrency: 10,
  });
  worker.on('error', () => undefined);
  onTestFinished(async () => {
    clearInterval(timer);
    await worker.close(true);
  });
  return worker;
}

/** A separate connection to inspect and modify Redis. */
export function openRedisClient({ url }: Pick<RedisServer, 'url'>): Redis {
  const redis = new Redis(url);
  redis.on('error', () => undefined);
  onTestFinished(() => redis.disconnect());
  return redis;
}

export function openQueue({ url }: Pick<RedisServer, 'url'>, name = POLLS_QUEUE): Queue {
  const queue = new Queue(name, { connection: { url } });
  queue.on('error', () => undefined);
  onTestFinished(() => queue.close());
  return queue;
}
