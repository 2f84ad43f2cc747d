import type { Redis } from 'ioredis';
import { describe, test } from 'vitest';
import { SUBMISSIONS_QUEUE } from '../../../src/redis/connections.ts';
import { sleep } from '../../support/processes/killable-server.ts';
import { openQueue, openRedisClient } from '../../support/redis/bullmq-rig.ts';
import {
  isRedisMissing,
  type RedisServer,
  redisForTest,
} from '../../support/redis/redis-server.ts';
import { prepareRedisWorld, type RedisWorld, untilLogged } from '../support/redis-world.ts';

/** More than twice the timeout of a request, and 10 s. */
const OVER_LEASE_MS = 32_000;

type Fault = (world: RedisWorld, redis: RedisServer, client: Redis) => Promise<void>;

const FAULTS: Record<string, Fault> = {
  'is emptied repeatedly': async (world, _redis, client) => {
    for (let flush = 0; flush < 5; flush++) {
      await client.flushall();
      await sleep(world.between(0, 600));
    }
  },
  'is killed, and continues without its data': async (world, redis) => {
    await redis.kill();
    await sleep(world.between(0, 2_000));
    await redis.restart();
    await untilLogged(world, 'redis.connected', 2);
  },
  'is full, and refuses writes': async (world, _redis, client) => {
    await client.config('SET', 'maxmemory', '100kb');
    await untilLogged(world, 'redis.disconnected');
    await sleep(1_000);
    const connections = world.server.logged('redis.connected').length;
    await client.config('SET', 'maxmemory', '0');
    await untilLogged(world, 'redis.connected', connections + 1);
  },
  'is silent for longer than a lease': async (world, redis) => {
    redis.pause();
    await untilLogged(world, 'redis.disconnected');
    await sleep(OVER_LEASE_MS);
    redis.resume();
    await untilLogged(world, 'redis.connected', 2);
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
  'lets the locks of a suspended worker expire': async (world) => {
    const [worker] = world.workers;
    worker?.pause();
    await sleep(OVER_LEASE_MS);
    worker?.resume();
  },
};

describe.skipIf(isRedisMissing())('nothing is lost if Redis', () => {
  test.each(Object.entries(FAULTS))('%s', async (name, fault) => {
    const redis = await redisForTest();
    const world = await prepareRedisWorld(`Redis ${name}`, { redisUrl: redis.url });
    await world.start();
    await untilLogged(world, 'worker.joined', 2);
    await world.through(() => fault(world, redis, openRedisClient(redis)));
    await world.expectSurvived();
  });
});
