import { describe, expect, test } from 'vitest';
import { sleep } from '../../support/processes/killable-server.ts';
import { openRedisClient } from '../../support/redis/bullmq-rig.ts';
import { isRedisMissing, redisForTest } from '../../support/redis/redis-server.ts';
import { prepareRedisWorld, untilLogged } from '../support/redis-world.ts';
import { readiness } from '../support/requests.ts';

describe.skipIf(isRedisMissing())('Redis refuses', () => {
  test('writes, as it is full (maxmemory, noeviction)', async () => {
    const redis = await redisForTest();
    const world = await prepareRedisWorld('Redis is full', { redisUrl: redis.url });
    await world.start();
    await untilLogged(world, 'worker.joined', 2);
    const redisClient = openRedisClient(redis);
    await world.through(async () => {
      await redisClient.config('SET', 'maxmemory', '100kb');
      await untilLogged(world, 'redis.disconnected');
      expect(world.server.logged('redis.disconnected').at(-1)).toMatchObject({ reason: 'refused' });
      expect(await readiness(world.server.url)).toMatchObject({
        status: 200,
        body: { status: 'degraded' },
      });
      await sleep(2_000);
      await redisClient.config('SET', 'maxmemory', '0');
      await untilLogged(world, 'redis.connected', 2);
    });
    await world.expectSurvived();
  });

  test('to keep its data: a full one that evicts keys, including jobs', async () => {
    const redis = await redisForTest({
      settings: { maxmemory: '3mb', 'maxmemory-policy': 'allkeys-random' },
    });
    const world = await prepareRedisWorld('eviction', { redisUrl: redis.url });
    await world.start();
    await untilLogged(world, 'redis.eviction_policy');
    const redisClient = openRedisClient(redis);
    await world.through(async () => {
      for (let count = 0; count < 40; count++) {
        await redisClient.set(`ballast-${count}`, 'x'.repeat(100_000)).catch(() => undefined);
        await sleep(50);
      }
      await redisClient.config('SET', 'maxmemory', '0');
    });
    expect(/^evicted_keys:(\d+)/m.exec(await redisClient.info('stats'))?.[1]).not.toBe('0');
    await world.expectSurvived();
  });

  test('writes, because it became a replica', async () => {
    const [redis, master] = [await redisForTest(), await redisForTest()];
    const world = await prepareRedisWorld('replica', { redisUrl: redis.url });
    await world.start();
    await untilLogged(world, 'worker.joined', 2);
    const redisClient = openRedisClient(redis);
    await world.through(async () => {
      await redisClient.call('REPLICAOF', '127.0.0.1', String(master.port));
      await untilLogged(world, 'redis.disconnected');
      await sleep(2_000);
      await redisClient.call('REPLICAOF', 'NO', 'ONE');
      await untilLogged(world, 'redis.connected', 2);
    });
    await world.expectSurvived();
  });

  test('the password, until it is correct', async () => {
    const redis = await redisForTest({ password: 'right' });
    const wrong = redis.url.replace('right', 'wrong');
    const world = await prepareRedisWorld('wrong password', { redisUrl: wrong });
    await world.start();
    await untilLogged(world, 'redis.disconnected');
    expect(world.server.logged('redis.disconnected').at(-1)).toMatchObject({ reason: 'refused' });
    await world.track(100);
    await openRedisClient(redis).config('SET', 'requirepass', 'wrong');
    await untilLogged(world, 'redis.connected');
    await world.through(() => sleep(1_000));
    await world.expectSurvived();
    expect(world.server.lines.join()).not.toContain('wrong@');
  });
});
