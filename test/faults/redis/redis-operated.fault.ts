import { describe, expect, test, vi } from 'vitest';
import { CRASH_ADMIN_TOKEN, sleep } from '../../support/processes/killable-server.ts';
import { createUsers, deniedSince } from '../../support/redis/acl.ts';
import { openRedisClient } from '../../support/redis/bullmq-rig.ts';
import { createAuthority, tlsOptions } from '../../support/redis/certificates.ts';
import { startCluster } from '../../support/redis/cluster.ts';
import { recordEvents } from '../../support/redis/event-recorder.ts';
import { freePort, isRedisMissing, redisForTest } from '../../support/redis/redis-server.ts';
import { sentinelsForTest } from '../../support/redis/sentinels.ts';
import { prepareRedisWorld, untilLogged } from '../support/redis-world.ts';

const REDIS_SECRET = 'signs-jobs-and-results-0123456789';

describe.skipIf(isRedisMissing())('Redis as it is operated', () => {
  test.each([
    ['is killed', 'kill'],
    ['hangs', 'pause'],
  ] as const)('Sentinels replace a primary that %s: no event and no job is lost', async (name, fault) => {
    const redis = await sentinelsForTest({ password: 'of-redis', sentinelPassword: 'of-sentinels' });
    const { url, ...sentinels } = redis.address;
    const world = await prepareRedisWorld(`failover, ${name}`, {
      redisUrl: url,
      redis: sentinels,
      redisSecret: REDIS_SECRET,
      producer: redis.address,
    });
    await world.start();
    await untilLogged(world, 'worker.joined', 2);
    const consumed = recordEvents(redis.address);
    await world.through(async () => {
      const former = await redis.primary();
      await former[fault]();
      await redis.replaced(former);
      await untilLogged(world, 'redis.connected', 2);
      await sleep(world.between(500, 1_500));
      // It becomes a replica, and discards what it alone contains.
      if (fault === 'kill') await former.restart();
      else former.resume();
    });
    // A consumer gets each event at least once, always with the same data.
    const finalized = () => [...consumed.values()].filter((bodies) => [...bodies].join().includes('.finalized'));
    await vi.waitUntil(() => finalized().length >= world.expected.size, { timeout: 60_000, interval: 200 });
    for (const bodies of consumed.values()) expect(bodies.size).toBe(1);
    expect(finalized()).toHaveLength(world.expected.size);
    await world.expectSurvived();
    expect(world.server.logged('polls.rejected')).toEqual([]);
    expect(world.server.lines.join()).not.toMatch(/of-redis|of-sentinels/);
  });

  test('TLS with a private authority and client certificates, which are replaced while it runs', async () => {
    const authority = createAuthority();
    const port = await freePort();
    const settings = tlsOptions(port, authority.ca, authority.issue('redis'));
    const redis = await redisForTest({ keeps: true, settings });
    const client = authority.issue('client');
    const files = { tls_ca_file: authority.ca, tls_cert_file: client.cert, tls_key_file: client.key };
    const redisUrl = `rediss://localhost:${port}`;
    const world = await prepareRedisWorld('TLS', { redisUrl, redis: files, producer: { url: redisUrl, ...files } });
    await world.start();
    await untilLogged(world, 'worker.joined', 2);
    await world.through(async () => {
      authority.issue('client', client);
      await redis.restart();
      await untilLogged(world, 'redis.connected', 2);
      await sleep(2_000);
    });
    await world.expectSurvived();
  });

  test('the documented users with the least permissions: nothing is denied, and nothing is lost', async () => {
    const redis = await redisForTest();
    const admin = openRedisClient(redis);
    const users = await createUsers(admin, redis.url);
    const world = await prepareRedisWorld('ACL', {
      redisUrl: users.server,
      workerRedis: { url: users.worker },
      redisSecret: REDIS_SECRET,
      producer: { url: users.producer },
    });
    await world.start();
    await untilLogged(world, 'worker.joined', 2);
    const consumed = recordEvents({ url: users.consumer });
    await world.through(() => sleep(3_000));
    const board = await fetch(`${world.server.url}/queues/api/queues`, { headers: ADMIN });
    expect(board.status).toBe(200);
    // The board asks for the clients of each queue, which needs +client|list.
    expect((await deniedSince(admin)).filter((entry) => entry !== 'dawatch-server client|list')).toEqual([]);
    await vi.waitUntil(() => consumed.size >= world.expected.size, 30_000);
    await world.expectSurvived();
    expect(world.server.logged('redis.disconnected').filter(({ reason }) => reason === 'refused')).toEqual([]);
    expect((await deniedSince(admin)).filter((entry) => entry !== 'dawatch-server client|list')).toEqual([]);
  });

  test('a cluster is refused with the reason, and the server polls by itself', async () => {
    const cluster = await startCluster();
    const world = await prepareRedisWorld('cluster', { redisUrl: cluster.url });
    await world.start();
    await untilLogged(world, 'redis.disconnected');
    const refused = () => world.server.logged('redis.disconnected').find(({ reason }) => reason === 'cluster');
    await vi.waitUntil(() => refused() !== undefined, 10_000);
    expect(refused()).toMatchObject({
      message: 'this Redis is a cluster, which dawatch does not support',
      advice: expect.stringMatching(/Sentinels/),
    });
    for (const worker of world.workers)
      await vi.waitUntil(() => worker.lines.join().includes('this Redis is a cluster'), 10_000);
    const ids = await world.track(50);
    const { client } = world.server;
    await vi.waitUntil(async () => (await client.count({ status: ['finalized'] })) === ids.length, 60_000);
  });
});

const ADMIN = { authorization: `Bearer ${CRASH_ADMIN_TOKEN}` };
