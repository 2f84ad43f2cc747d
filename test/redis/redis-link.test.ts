import { describe, expect, it, vi } from 'vitest';
import type { Observation } from '../../src/submissions/classify.ts';
import { openEngine, openRedisClient, openWorker, PENDING } from '../support/redis/bullmq-rig.ts';
import { isRedisMissing, redisForTest } from '../support/redis/redis-server.ts';
import { startCuttingProxy } from '../support/servers/cutting-proxy.ts';
import { deadAddress } from '../support/servers/upstream-server.ts';

const FENCING_TOKEN_KEY = 'bull:dawatch-workers:fencing-token';

/** The server's side, which records the polls that it sends itself. */
function openServer(
  redis: { url: string },
  setting: { leaseMs?: number; timeoutMs?: number } = {},
) {
  const own: string[] = [];
  const server = openEngine(redis, {
    ...setting,
    local: async (_upstream, submissionId) => {
      own.push(submissionId);
      return PENDING;
    },
  });
  const poll = async (...submissionIds: string[]) => {
    const observations: Observation[] = [];
    await server.engine.poll({ upstream: 'default', submissionIds }, (observation) =>
      observations.push(observation),
    );
    return observations.map(({ submissionId }) => submissionId).sort();
  };
  const disconnected = (reason: string) =>
    expect.objectContaining({ kind: 'disconnected', reason });
  return { ...server, own, poll, disconnected };
}

describe.skipIf(isRedisMissing())('with Redis', () => {
  it('Redis crashes during a batch: nothing is polled twice, later batches are polled by this process', async () => {
    const redis = await redisForTest();
    const server = openServer(redis, { leaseMs: 1_500, timeoutMs: 100 });
    const inFlight = Promise.withResolvers<void>();
    const worker = openWorker(redis, {
      timeoutMs: 100,
      sendPoll: async () => {
        inFlight.resolve();
        await held.promise;
        return PENDING;
      },
    });
    const held = Promise.withResolvers<void>();
    await server.sees(1);
    const out = server.poll('a');
    await inFlight.promise;
    await redis.kill();
    held.resolve();
    await server.isDisconnected();
    expect(await server.poll('b')).toEqual(['b']);
    expect(await out).toEqual([]);
    expect(server.own).toEqual(['b']);
    await redis.restart();
    await server.sees(1);
    expect(await server.poll('c')).toEqual(['c']);
    expect(worker.polled).toEqual(['a', 'c']);
  });

  it('a wrong password is reported as disconnected, without the password', async () => {
    const redis = await redisForTest({ password: 'right-one' });
    const server = openServer({ url: redis.url.replace('right-one', 'wrong-one') });
    await vi.waitFor(
      () => expect(JSON.stringify(server.events)).toMatch(/WRONGPASS|NOAUTH/),
      10_000,
    );
    await vi.waitFor(
      () => expect(server.link.health).toMatchObject({ state: 'disconnected', reason: 'refused' }),
      10_000,
    );
    expect(JSON.stringify(server.events)).not.toContain('wrong-one');
    expect(await server.poll('a')).toEqual(['a']);
  });

  it('a silently lost connection is replaced', async () => {
    const redis = await redisForTest();
    const proxy = await startCuttingProxy(redis.url);
    const server = openEngine({ url: proxy.url.replace('http:', 'redis:') });
    await server.isUp();
    proxy.silence();
    await server.isDisconnected();
    await server.isUp();
    expect(server.link.usable).toBeDefined();
  });

  it('a read-only Redis counts as disconnected until it accepts writes again', async () => {
    const redis = await redisForTest();
    const server = openServer(redis);
    openWorker(redis);
    await server.sees(1);
    const redisClient = openRedisClient(redis);
    await redisClient.config('SET', 'maxmemory', '1');
    await server.isDisconnected();
    expect(server.events).toContainEqual(server.disconnected('refused'));
    expect(await server.poll('a')).toEqual(['a']);
    await redisClient.config('SET', 'maxmemory', '0');
    await server.sees(1);
  });

  it('a primary that became a replica is left for the current address of its name', async () => {
    const redis = await redisForTest();
    const server = openServer(redis);
    await server.isUp();
    const redisClient = openRedisClient(redis);
    const { port } = new URL(await deadAddress());
    await redisClient.replicaof('127.0.0.1', port);
    await server.isDisconnected();
    expect(await server.poll('a')).toEqual(['a']);
    await redisClient.replicaof('NO', 'ONE');
    await server.isUp();
  });

  it('a fencing token set by another client is reported and replaced', async () => {
    const redis = await redisForTest();
    const server = openServer(redis);
    await server.isUp();
    const before = server.link.usable?.fencingToken ?? '';
    await openRedisClient(redis).set(FENCING_TOKEN_KEY, `${before.split('/')[0]}/another`);
    await vi.waitUntil(() => server.link.usable?.fencingToken !== before, 5_000);
    expect(server.events).toContainEqual({ kind: 'fencing_token_lost' });
  });

  it('a listener of fencing tokens throws: the token is not used, and the next probe calls the listeners again', async () => {
    const redis = await redisForTest();
    const server = openServer(redis);
    const received: boolean[] = [];
    server.link.onFencingToken(({ isSameRedis }) => {
      received.push(isSameRedis);
      if (received.length === 1) throw new Error('a file is unusable');
    });
    await expect.poll(() => received).toHaveLength(1);
    expect(server.link.usable).toBeUndefined();
    await server.sees(0);
    // The token of the failed probe is not the previous one.
    expect(received).toEqual([false, false]);
    expect(server.events.map(({ kind }) => kind)).not.toContain('fencing_token_lost');
  });

  it('reports workers that register and unregister', async () => {
    const redis = await redisForTest();
    const server = openServer(redis);
    const worker = openWorker(redis, { name: 'w-1' });
    await server.sees(1);
    const seen = { name: 'w-1', version: '0.0.0-test', in_flight: 0, concurrency: 16 };
    expect(server.link.health).toEqual({
      state: 'up',
      reason: null,
      workers: [seen],
      refusedWorkers: 0,
      disconnectedSince: null,
      workersLeftAt: null,
    });
    await worker.close();
    await server.sees(0);
    expect(server.link.health.workersLeftAt).toEqual(expect.any(Number));
    expect(server.events).toContainEqual({ kind: 'worker_joined', worker: seen });
    expect(server.events).toContainEqual({
      kind: 'worker_left',
      worker: expect.objectContaining({ name: 'w-1' }),
    });
  });

  it('a worker with the previous format is reported and gets no jobs', async () => {
    const redis = await redisForTest();
    const redisClient = openRedisClient(redis);
    await redisClient.sadd('bull:dawatch-workers:names', 'old');
    const old = { name: 'old', version: '0.1.0', in_flight: 0, concurrency: 100 };
    await redisClient.set('bull:dawatch-workers:names:old', JSON.stringify(old), 'PX', 60_000);
    const server = openServer(redis);
    await server.isUp();
    expect(server.events).toContainEqual({
      kind: 'worker_refused',
      worker: { name: 'old', reason: 'other_format' },
    });
    expect(await server.poll('a')).toEqual(['a']);
    expect(server.own).toEqual(['a']);
  });

  it.each<[string, string, unknown]>([
    [
      'a name with control characters',
      '\u001b[31mred',
      { version: '1', in_flight: 0, concurrency: 1 },
    ],
    [
      'a version with markup',
      'w',
      { name: 'w', version: '<b>1</b>', in_flight: 0, concurrency: 1 },
    ],
    [
      'an announcement of several megabytes',
      'w',
      { name: 'w', version: '1', in_flight: 0, concurrency: 1, x: 'x'.repeat(5e6) },
    ],
  ])('%s is not a worker, and does no harm', async (_what, name, worker) => {
    const redis = await redisForTest();
    const redisClient = openRedisClient(redis);
    await redisClient.sadd('bull:dawatch-workers:names', name);
    const text = JSON.stringify({ format: 2, worker: { name, ...(worker as object) } });
    await redisClient.set(`bull:dawatch-workers:names:${name}`, text, 'PX', 60_000);
    const server = openServer(redis);
    openWorker(redis, { name: 'genuine' });
    await server.sees(1);
    expect(server.link.health.workers).toMatchObject([{ name: 'genuine' }]);
    const names = server.events.flatMap((event) => ('worker' in event ? [event.worker.name] : []));
    expect(names.join()).not.toMatch(/\p{Cc}/u);
  });
});
