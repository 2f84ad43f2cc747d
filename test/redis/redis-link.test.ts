import { describe, expect, it } from 'vitest';
import { openEngine, openWorker } from '../support/redis/bullmq-rig.ts';
import { isRedisMissing, redisForTest } from '../support/redis/redis-server.ts';

describe.skipIf(isRedisMissing())('with Redis', () => {
  it('logs a wrong password as disconnected, without the password', async () => {
    const redis = await redisForTest({ password: 'right-one' });
    const server = openEngine({ url: redis.url.replace('right-one', 'wrong-one') });
    await server.isDisconnected();
    expect(server.logged).toMatchObject([
      { msg: 'redis.disconnected', message: expect.stringMatching(/WRONGPASS|NOAUTH/) },
    ]);
    expect(JSON.stringify(server.logged)).not.toContain('wrong-one');
    expect(await server.poll('a')).toHaveLength(1);
  });

  it('reports workers that connect and leave', async () => {
    const redis = await redisForTest();
    const server = openEngine(redis);
    const worker = openWorker(redis, { name: 'w-1' });
    await server.sees(1);
    expect(server.link.health).toEqual({
      state: 'up',
      workers: ['w-1'],
      paused: [],
      disconnectedSince: null,
      workersLeftAt: null,
    });
    await worker.close();
    await server.sees(0);
    expect(server.link.health.workersLeftAt).toEqual(expect.any(Number));
    for (const msg of ['worker.joined', 'worker.left'])
      expect(server.logged).toContainEqual(expect.objectContaining({ msg, worker: 'w-1' }));
  });

  it('a server knows only the workers of its database', async () => {
    const { url } = await redisForTest();
    const [first, second] = [openEngine({ url }), openEngine({ url: `${url}/1` })];
    openWorker({ url: `${url}/1` }, { name: 'w-2' });
    await second.sees(1);
    await first.sees(0);
    expect(second.link.health.workers).toEqual(['w-2']);
    expect(await first.poll('a')).toHaveLength(1);
    expect(await second.poll('b')).toMatchObject([{ worker: 'w-2' }]);
  });
});
