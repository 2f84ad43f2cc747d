import { randomUUID } from 'node:crypto';
import { Worker } from 'bullmq';
import { describe, expect, it, onTestFinished } from 'vitest';
import { POLLS_QUEUE } from '../../src/redis/connections.ts';
import { openEngine, openQueue, openRedisClient } from '../support/redis/bullmq-rig.ts';
import { isRedisMissing, type RedisServer, redisForTest } from '../support/redis/redis-server.ts';
import { eventually, until } from '../support/until.ts';

const LONG = 60_000;

/** Adds two jobs of a previous server, one waiting and one that a worker processes. */
async function addEarlierJobs(redis: RedisServer) {
  const queue = openQueue(redis);
  const worker = new Worker(POLLS_QUEUE, null, { connection: { url: redis.url } });
  worker.on('error', () => undefined);
  onTestFinished(() => worker.close());
  await queue.add('poll', {}, { jobId: randomUUID() });
  const job = await worker.getNextJob('token');
  await queue.add('poll', {}, { jobId: randomUUID() });
  return { queue, end: () => job?.moveToCompleted({}, 'token', false) };
}

describe.skipIf(isRedisMissing())('a starting server with Redis', () => {
  it('removes waiting jobs, and waits for jobs that workers still process', async () => {
    const redis = await redisForTest();
    const { queue, end } = await addEarlierJobs(redis);
    const server = openEngine(redis);
    let isAlone = false;
    const alone = server.untilPreviousEnded(LONG).then(() => {
      isAlone = true;
    });
    await eventually(async () => expect(await queue.getWaitingCount()).toBe(0));
    const redisClient = openRedisClient(redis);
    const checks = async () =>
      Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redisClient.info('commandstats'))?.[1]);
    const before = await checks();
    await until(async () => (await checks()) >= before + 2);
    expect(isAlone).toBe(false);
    await end();
    await alone;
  });

  it('waits no longer than the leases', async () => {
    const redis = await redisForTest();
    await addEarlierJobs(redis);
    await openEngine(redis).untilPreviousEnded(300);
  });
});

it('without Redis, waits until the leases of an earlier process have expired', async () => {
  const server = openEngine({ url: 'redis://127.0.0.1:1' });
  const before = performance.now();
  await server.untilPreviousEnded(300);
  expect(performance.now() - before).toBeGreaterThan(290);
});
