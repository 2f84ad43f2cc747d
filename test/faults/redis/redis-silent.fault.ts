import { describe, test } from 'vitest';
import { sleep } from '../../support/processes/killable-server.ts';
import { isRedisMissing, redisForTest } from '../../support/redis/redis-server.ts';
import { startCuttingProxy } from '../../support/servers/cutting-proxy.ts';
import { prepareRedisWorld, untilLogged } from '../support/redis-world.ts';

describe.skipIf(isRedisMissing())('Redis does not respond', () => {
  test('it is suspended for longer than a lease', async () => {
    const redis = await redisForTest();
    const world = await prepareRedisWorld('Redis stands still', { redisUrl: redis.url });
    await world.start();
    await untilLogged(world, 'worker.joined', 2);
    await world.through(async () => {
      redis.pause();
      await untilLogged(world, 'redis.disconnected');
      // Submissions tracked meanwhile become final, because the server polls by itself.
      await sleep(13_000);
      redis.resume();
      await untilLogged(world, 'redis.connected', 2);
    });
    await world.expectSurvived();
  });

  test('connections are cut in the middle of a message, and others become silent', async () => {
    const redis = await redisForTest();
    const proxy = await startCuttingProxy(redis.url);
    const redisUrl = proxy.url.replace('http', 'redis');
    const world = await prepareRedisWorld('connections', { redisUrl, producer: redis });
    await world.start();
    await untilLogged(world, 'worker.joined', 2);
    await world.through(async () => {
      for (let count = 0; count < 10; count++) {
        proxy.cut();
        await sleep(world.between(0, 800));
      }
      proxy.silence();
      await sleep(8_000);
      proxy.silence();
      await sleep(2_000);
    });
    await world.expectSurvived();
  });
});
