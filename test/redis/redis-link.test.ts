import { describe, expect, it, vi } from 'vitest';
import { openEngine, openRedisClient, openWorker, PENDING } from '../support/redis/bullmq-rig.ts';
import { isRedisMissing, redisForTest } from '../support/redis/redis-server.ts';
import { startCuttingProxy } from '../support/servers/cutting-proxy.ts';
import { deadAddress } from '../support/servers/upstream-server.ts';

describe.skipIf(isRedisMissing())('with Redis', () => {
  it('Redis crashes during a batch: nothing is polled twice, later batches are polled by this process', async () => {
    const redis = await redisForTest();
    const server = openEngine(redis, { leaseMs: 1_500 });
    const inFlight = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    const worker = openWorker(redis, {
      timeoutMs: 100,
      sendPoll: async () => {
        inFlight.resolve();
        await held.promise;
        return PENDING;
      },
    });
    await server.sees(1);
    const out = server.poll('a');
    await inFlight.promise;
    await redis.kill();
    held.resolve();
    await server.isDisconnected();
    expect(await server.poll('b')).toHaveLength(1);
    expect(await out).toEqual([]);
    expect(server.polled).toEqual(['b']);
    await redis.restart();
    await server.sees(1);
    // Until the job in flight had no result, the server polls itself.
    await vi.waitFor(async () => expect(await server.poll('c')).toHaveLength(1), 5_000);
    expect(worker.polled.slice(0, 1)).toEqual(['a']);
  });

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

  it('a silently lost connection is replaced', async () => {
    const redis = await redisForTest();
    const proxy = await startCuttingProxy(redis.url);
    const server = openEngine({ url: proxy.url.replace('http:', 'redis:') });
    await server.sees(0);
    proxy.silence();
    await server.isDisconnected();
    await server.sees(0);
  });

  it('a read-only Redis counts as disconnected until it accepts writes again', async () => {
    const redis = await redisForTest();
    const server = openEngine(redis);
    openWorker(redis);
    await server.sees(1);
    const redisClient = openRedisClient(redis);
    await redisClient.config('SET', 'maxmemory', '1');
    await server.isDisconnected();
    expect(await server.poll('a')).toHaveLength(1);
    expect(server.polled).toEqual(['a']);
    await redisClient.config('SET', 'maxmemory', '0');
    await server.sees(1);
  });

  it('a primary that became a replica is left for the current address of its name', async () => {
    const redis = await redisForTest();
    const server = openEngine(redis);
    await server.sees(0);
    const redisClient = openRedisClient(redis);
    const { port } = new URL(await deadAddress());
    await redisClient.replicaof('127.0.0.1', port);
    await server.isDisconnected();
    await redisClient.replicaof('NO', 'ONE');
    await server.sees(0);
  });

  it('reports workers that connect and leave', async () => {
    const redis = await redisForTest();
    const server = openEngine(redis);
    const worker = openWorker(redis, { name: 'w-1' });
    await server.sees(1);
    expect(server.link.health).toEqual({
      state: 'up',
      workers: ['w-1'],
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
