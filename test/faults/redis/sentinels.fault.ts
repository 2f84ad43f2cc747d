import { expect, test, vi } from 'vitest';
import { sleep } from '../../support/processes/killable-server.ts';
import { recordEvents } from '../../support/redis/producer.ts';
import { isRedisMissing } from '../../support/redis/redis-server.ts';
import { sentinelsForTest } from '../../support/redis/sentinels.ts';
import { prepareRedisWorld, untilLogged } from '../support/redis-world.ts';

test.skipIf(isRedisMissing())(
  'Sentinels replace a primary that hangs: no event and no job is lost',
  async () => {
    const redis = await sentinelsForTest({
      password: 'of-redis',
      sentinelPassword: 'of-sentinels',
    });
    const { url, ...sentinels } = redis.address;
    const world = await prepareRedisWorld('failover of Redis', {
      redisUrl: url,
      redis: { ...sentinels },
      producer: redis.address,
    });
    await world.start();
    await untilLogged(world, 'worker.joined', 2);
    const consumed = recordEvents(redis.address);
    await world.through(async () => {
      const former = await redis.primary();
      former.pause();
      await redis.replaced(former);
      await untilLogged(world, 'redis.connected', 2);
      await sleep(world.between(500, 1_500));
      // It becomes a replica, and discards what it alone contains.
      former.resume();
    });
    // A consumer gets each event at least once, always with the same data.
    const finalized = () =>
      [...consumed.values()].filter((bodies) => [...bodies].join().includes('.finalized'));
    await vi.waitUntil(() => finalized().length >= world.expected.size, {
      timeout: 60_000,
      interval: 200,
    });
    for (const bodies of consumed.values()) expect(bodies.size).toBe(1);
    expect(finalized()).toHaveLength(world.expected.size);
    await world.expectSurvived();
    expect(world.server.lines.join()).not.toMatch(/of-redis|of-sentinels/);
  },
);
