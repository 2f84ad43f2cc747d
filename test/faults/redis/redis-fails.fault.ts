import type { Redis } from 'ioredis';
import { onTestFinished, test } from 'vitest';
import { SUBMISSIONS_QUEUE } from '../../../src/redis/connections.ts';
import { sleep } from '../../support/processes/killable-server.ts';
import { openQueue, openRedisClient } from '../../support/redis/bullmq-rig.ts';
import { openProducer } from '../../support/redis/producer.ts';
import {
  isRedisMissing,
  type RedisServer,
  redisForTest,
} from '../../support/redis/redis-server.ts';
import { until } from '../../support/until.ts';
import { prepareWorld } from '../support/world.ts';

const TIMEOUT_S = 1;
/** More than twice the timeout of a request, and 10 s. */
const OVER_LEASE_MS = 12_500;
const BATCH = 10;
const PAUSE_MS = 500;
/** Rounds of load before a fault. */
const ROUNDS = 3;

type World = Awaited<ReturnType<typeof prepareWorld>>;

type Fault = (
  world: World,
  redis: RedisServer,
  /** `lost` and `back` wait until the server reports it. */
  on: { client: Redis; lost: () => Promise<unknown>; back: () => Promise<unknown> },
) => Promise<void>;

const FAULTS: Record<string, Fault> = {
  'is killed, and continues without its data': async (world, redis, { back }) => {
    await redis.kill();
    await sleep(world.between(0, 2_000));
    await redis.restart();
    await back();
  },
  'is full, and refuses writes': async (_world, _redis, { client, lost, back }) => {
    await client.config('SET', 'maxmemory', '100kb');
    await lost();
    await client.config('SET', 'maxmemory', '0');
    await back();
  },
  'is silent for longer than a lease': async (_world, redis, { lost, back }) => {
    redis.pause();
    await lost();
    await sleep(OVER_LEASE_MS);
    redis.resume();
    await back();
  },
  'has jobs twice, of polls and of producers': async (world, redis) => {
    const [submissions, polls] = [openQueue(redis, SUBMISSIONS_QUEUE), openQueue(redis)];
    const ids = world.submit(20);
    for (let count = 0; count < 20; count++) {
      await submissions.add('track', { submission_ids: ids }, { jobId: `twice-${count % 5}` });
      const [poll] = await polls.getJobs(['active', 'waiting', 'completed'], 0, 0);
      if (poll) await polls.add(poll.name, poll.data, { jobId: `copy-${count}` });
      await sleep(100);
    }
    for (const id of ids) world.expected.set(id, 'finalized');
  },
  'has a worker that is suspended for longer than a lease': async (world) => {
    const [worker] = world.workers;
    worker?.pause();
    await sleep(OVER_LEASE_MS);
    worker?.resume();
  },
};

test.skipIf(isRedisMissing())(
  `nothing is lost if Redis ${Object.keys(FAULTS).join('; ')}`,
  async () => {
    const redis = await redisForTest();
    const client = openRedisClient(redis);
    const world = await prepareWorld('Redis fails', {
      redisUrl: redis.url,
      workers: 2,
      sandbox: { latencyMs: 4_000 },
      upstream: { timeout_s: TIMEOUT_S },
    });
    const through = loadOn(world, redis);
    await world.start();
    const untilLogged = (event: string, times: number) =>
      until(() => world.server.logged(event).length >= times);
    await untilLogged('worker.joined', 2);
    for (const [name, fault] of Object.entries(FAULTS)) {
      console.log(`Redis ${name}`);
      const again = (event: string) => {
        const times = world.server.logged(event).length + 1;
        return () => untilLogged(event, times);
      };
      const on = { client, lost: again('redis.disconnected'), back: again('redis.connected') };
      await through(() => fault(world, redis, on));
    }
    await world.expectSurvived();
  },
);

/**
 * Returns a function that keeps polls, intake jobs and HTTP requests in flight from before a fault
 * until after it. Producers retry as docs/queues.md requires.
 */
function loadOn(world: World, redis: RedisServer) {
  const given = new AbortController();
  onTestFinished(() => given.abort());
  const producer = openProducer(redis);
  const enqueue = async (): Promise<void> => {
    const ids = world.submit(BATCH);
    await producer.enqueue(ids, given.signal);
    for (const id of ids) world.expected.set(id, 'finalized');
  };
  return async (fault: () => Promise<void>): Promise<void> => {
    let isOver = false;
    let rounds = 0;
    const jobs: Promise<void>[] = [];
    const load = async () => {
      while (!isOver) {
        const job = enqueue();
        // If the fault itself fails, the test ends before it awaits the jobs, and their abort is no
        // second failure.
        job.catch(() => {});
        jobs.push(job);
        await world.track(BATCH);
        rounds += 1;
        await sleep(PAUSE_MS);
      }
    };
    const loading = load();
    loading.catch(() => {});
    const untilRound = (round: number) => Promise.race([until(() => rounds >= round), loading]);
    try {
      await untilRound(ROUNDS);
      await fault();
      await untilRound(rounds + 1);
    } finally {
      isOver = true;
    }
    await loading;
    await Promise.all(jobs);
  };
}
