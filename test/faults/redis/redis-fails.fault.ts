import type { Redis } from 'ioredis';
import { test } from 'vitest';
import { SUBMISSIONS_QUEUE } from '../../../src/redis/connections.ts';
import { sleep } from '../../support/processes/killable-server.ts';
import { openQueue, openRedisClient } from '../../support/redis/bullmq-rig.ts';
import {
  isRedisMissing,
  type RedisServer,
  redisForTest,
} from '../../support/redis/redis-server.ts';
import { prepareRedisWorld, type RedisWorld, untilLogged } from '../support/redis-world.ts';

const TIMEOUT_S = 1;
/** More than twice the timeout of a request, and 10 s. */
const OVER_LEASE_MS = 12_500;

type Fault = (
  world: RedisWorld,
  redis: RedisServer,
  /** `lost` and `back` wait until the server reports it. */
  on: { client: Redis; lost: () => Promise<void>; back: () => Promise<void> },
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
    const world = await prepareRedisWorld('Redis fails', {
      redisUrl: redis.url,
      upstream: { timeout_s: TIMEOUT_S },
    });
    await world.start();
    await untilLogged(world, 'worker.joined', 2);
    for (const [name, fault] of Object.entries(FAULTS)) {
      console.log(`Redis ${name}`);
      const again = (event: string) => {
        const times = world.server.logged(event).length + 1;
        return () => untilLogged(world, event, times);
      };
      const on = { client, lost: again('redis.disconnected'), back: again('redis.connected') };
      await world.through(() => fault(world, redis, on));
    }
    await world.expectSurvived();
  },
);
