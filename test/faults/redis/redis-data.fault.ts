import { describe, expect, test } from 'vitest';
import { sleep } from '../../support/processes/killable-server.ts';
import { openRedisClient } from '../../support/redis/bullmq-rig.ts';
import { isRedisMissing, redisForTest } from '../../support/redis/redis-server.ts';
import { prepareRedisWorld, untilLogged } from '../support/redis-world.ts';

describe.skipIf(isRedisMissing())('Redis loses its data', () => {
  test('FLUSHALL, repeatedly, while polls and intake jobs are in flight', async () => {
    const redis = await redisForTest();
    const world = await prepareRedisWorld('FLUSHALL', { redisUrl: redis.url });
    await world.start();
    await untilLogged(world, 'worker.joined', 2);
    const redisClient = openRedisClient(redis);
    await world.through(async () => {
      for (let flush = 0; flush < 10; flush++) {
        await redisClient.flushall();
        await sleep(world.between(0, 600));
      }
    });
    await world.expectSurvived();
  });

  test.each([
    ['with its data', true],
    ['without its data', false],
  ])('by a crash and a restart, %s', async (name, keeps) => {
    const redis = await redisForTest({ keeps });
    const world = await prepareRedisWorld(`Redis killed, ${name}`, { redisUrl: redis.url });
    await world.start();
    await untilLogged(world, 'worker.joined', 2);
    await world.through(async () => {
      for (let kill = 0; kill < 3; kill++) {
        await redis.kill();
        await sleep(world.between(0, 2_000));
        await redis.restart();
        await sleep(world.between(500, 2_000));
      }
    });
    await world.expectSurvived();
    expect(world.server.logged('redis.disconnected').length).toBeGreaterThan(0);
  });
});
