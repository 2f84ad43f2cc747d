import type { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { SUBMISSIONS_QUEUE } from '../../src/redis/connections.ts';
import { checkRedis } from '../../src/redis/doctor-redis.ts';
import { openQueue, openRedisClient } from '../support/redis/bullmq-rig.ts';
import { isRedisMissing, redisForTest, startCluster } from '../support/redis/redis-server.ts';
import { deadAddress } from '../support/servers/upstream-server.ts';

const LIMIT_MS = 60_000;

async function statuses(url: string) {
  const findings = await checkRedis({ url }, LIMIT_MS);
  for (const { status, action } of findings) expect(action === null).toBe(status === 'ok');
  return Object.fromEntries(findings.map(({ name, status }) => [name, status]));
}

describe.skipIf(isRedisMissing())('a Redis', () => {
  it('that persists its data and evicts nothing passes', async () => {
    const { url } = await redisForTest({ keeps: true });
    expect(await statuses(url)).toEqual({ redis: 'ok' });
  });

  it('without persistence, with eviction or with a paused queue is a problem', async () => {
    const redis = await redisForTest({ settings: { 'maxmemory-policy': 'allkeys-lru' } });
    await openQueue(redis, SUBMISSIONS_QUEUE).pause();
    expect(await statuses(redis.url)).toEqual({
      redis: 'ok',
      'redis.queues': 'problem',
      'redis.persistence': 'warning',
      'redis.eviction': 'warning',
    });
  });

  it.each<[string, (redis: Redis) => Promise<unknown>, RegExp]>([
    [
      'is a replica',
      async (redis) => redis.replicaof('127.0.0.1', new URL(await deadAddress()).port),
      /READONLY/,
    ],
    ['is full', (redis) => redis.config('SET', 'maxmemory', '1'), /OOM/],
    [
      'has too few replicas',
      (redis) => redis.config('SET', 'min-replicas-to-write', '1'),
      /NOREPL/,
    ],
    ['denies a command', (redis) => redis.acl('SETUSER', 'default', '-time'), /permission/],
  ])('that %s and refuses what the server does is a problem', async (_, change, reply) => {
    const redis = await redisForTest();
    await change(openRedisClient(redis));
    expect(await checkRedis({ url: redis.url }, LIMIT_MS)).toContainEqual({
      ...{ name: 'redis.writes', status: 'problem' },
      ...{ message: expect.stringMatching(reply), action: expect.any(String) },
    });
  });

  it('that is a cluster is a problem', async () => {
    const { url } = await startCluster();
    expect(await checkRedis({ url }, LIMIT_MS)).toMatchObject([
      { status: 'problem', message: 'it is a cluster, which dawatch does not support' },
    ]);
  });
});

describe('an address of Redis', () => {
  it('at which the connection is refused is a problem', async () => {
    const url = (await deadAddress()).replace('http:', 'redis:');
    expect(await checkRedis({ url }, LIMIT_MS)).toMatchObject([
      {
        status: 'problem',
        message: expect.stringMatching(/ECONNREFUSED/),
        action: expect.stringMatching(/DAWATCH_REDIS_URL/),
      },
    ]);
  });
});
