import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { EVENTS_QUEUE } from '../../../src/redis/events-queue.ts';
import { POLLS_QUEUE } from '../../../src/redis/messages.ts';
import { sleep } from '../../support/processes/killable-server.ts';
import { createUsers, deniedSince } from '../../support/redis/acl.ts';
import { openRedisClient } from '../../support/redis/bullmq-rig.ts';
import { createAuthority, tlsOptions } from '../../support/redis/certificates.ts';
import { recordEvents } from '../../support/redis/producer.ts';
import {
  freePort,
  isRedisMissing,
  redisForTest,
  startCluster,
} from '../../support/redis/redis-server.ts';
import { sentinelsForTest } from '../../support/redis/sentinels.ts';
import { eventIdsOf } from '../../support/servers/deliveries.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { isPrlimitMissing, limitFileSize } from '../disk/file-limit.ts';
import { prepareRedisWorld, untilLogged } from '../support/redis-world.ts';

const REDIS_SECRET = 'signs-jobs-and-results-0123456789';

describe.skipIf(isRedisMissing())('Redis as it is operated', () => {
  test.each([
    ['is killed', 'kill'],
    ['hangs', 'pause'],
  ] as const)(
    'Sentinels replace a primary that %s: no event and no job is lost',
    async (name, fault) => {
      const redis = await sentinelsForTest({
        password: 'of-redis',
        sentinelPassword: 'of-sentinels',
      });
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
      const finalized = () =>
        [...consumed.values()].filter((bodies) => [...bodies].join().includes('.finalized'));
      await vi.waitUntil(() => finalized().length >= world.expected.size, {
        timeout: 60_000,
        interval: 200,
      });
      for (const bodies of consumed.values()) expect(bodies.size).toBe(1);
      expect(finalized()).toHaveLength(world.expected.size);
      await world.expectSurvived();
      expect(world.server.logged('polls.rejected')).toEqual([]);
      expect(world.server.lines.join()).not.toMatch(/of-redis|of-sentinels/);
    },
  );

  test('TLS with a private authority and client certificates, which are replaced while it runs', async () => {
    const authority = createAuthority();
    const port = await freePort();
    const settings = tlsOptions(port, authority.ca, authority.issue('redis'));
    const redis = await redisForTest({ keeps: true, settings });
    const client = authority.issue('client');
    const files = {
      tls_ca_file: authority.ca,
      tls_cert_file: client.cert,
      tls_key_file: client.key,
    };
    const redisUrl = `rediss://localhost:${port}`;
    const world = await prepareRedisWorld('TLS', {
      redisUrl,
      redis: files,
      producer: { url: redisUrl, ...files },
    });
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

  test('the documented users with the least permissions: nothing is denied in any recovery, and nothing is lost', async () => {
    const aclfile = join(tempFolder(), 'users.acl');
    writeFileSync(aclfile, '');
    const redis = await redisForTest({ keeps: true, settings: { aclfile } });
    const admin = openRedisClient(redis);
    const users = await createUsers(admin, redis.url);
    await admin.call('ACL', 'SAVE');
    const world = await prepareRedisWorld('ACL', {
      redisUrl: users.server,
      workerRedis: { url: users.worker },
      redisSecret: REDIS_SECRET,
      producer: { url: users.producer },
    });
    await world.start();
    await untilLogged(world, 'worker.joined', 2);
    const consumed = recordEvents({ url: users.consumer });
    const denied = () => deniedSince(admin);
    await world.through(async () => {
      await sleep(1_000);
      const poll = await killBusyWorker(world, admin);
      await findStalled(openIdleWorker(POLLS_QUEUE, users.worker, 0), admin, poll);
      const consumer = openIdleWorker(EVENTS_QUEUE, users.consumer, 1);
      await findStalled(consumer, admin, await takeJob(consumer));
      await world.server.kill();
      world.server.start();
      await world.server.listening();
      await untilLogged(world, 'worker.joined', 4);
      // A restarted Redis has an empty log.
      expect(await denied()).toEqual([]);
      await redis.restart();
      await untilLogged(world, 'redis.connected', 3);
      await sleep(1_000);
    });
    if (!isPrlimitMissing()) await postponeJob(world);
    await world.expectSurvived();
    const events = eventIdsOf(world.server.file);
    await vi.waitUntil(() => events.every((id) => consumed.has(id)), 30_000);
    expect(
      world.server.logged('redis.disconnected').filter(({ reason }) => reason === 'refused'),
    ).toEqual([]);
    expect(await denied()).toEqual([]);
  });

  test('a cluster is refused with the reason, and the server polls by itself', async () => {
    const cluster = await startCluster();
    const world = await prepareRedisWorld('cluster', { redisUrl: cluster.url });
    await world.start();
    await untilLogged(world, 'redis.disconnected');
    const refused = () =>
      world.server.logged('redis.disconnected').find(({ reason }) => reason === 'cluster');
    await vi.waitUntil(() => refused() !== undefined, 10_000);
    expect(refused()).toMatchObject({
      message: 'this Redis is a cluster, which dawatch does not support',
      advice: expect.stringMatching(/Sentinels/),
    });
    for (const worker of world.workers)
      await vi.waitUntil(() => worker.lines.join().includes('this Redis is a cluster'), 10_000);
    const ids = await world.track(50);
    const { client } = world.server;
    await vi.waitUntil(
      async () => (await client.count({ status: ['finalized'] })) === ids.length,
      60_000,
    );
  });
});

type World = Awaited<ReturnType<typeof prepareRedisWorld>>;

/** Kills a worker that has a job, and starts it again. Returns the id of its job. */
async function killBusyWorker({ workers: [worker] }: World, admin: Redis): Promise<string> {
  const jobsOfWorker = async () => {
    const active = await admin.lrange(`bull:${POLLS_QUEUE}:active`, 0, -1);
    const owners = await Promise.all(
      active.map((id) => admin.hget(`bull:${POLLS_QUEUE}:${id}`, 'pb')),
    );
    return active.filter((_, index) => owners[index]?.endsWith(`-${worker?.pid()}`));
  };
  await vi.waitUntil(async () => (await jobsOfWorker()).length > 0, {
    timeout: 20_000,
    interval: 5,
  });
  await worker?.kill();
  const [job] = await jobsOfWorker();
  worker?.start();
  if (job === undefined) throw new Error('the worker had no job');
  return job;
}

/**
 * A worker of a queue as BullMQ offers it, with the permissions of the user in `url`; takes no jobs
 * by itself.
 */
function openIdleWorker(queue: string, url: string, maxStalledCount: number): Worker {
  const settings = {
    autorun: false,
    stalledInterval: 200,
    maxStalledCount,
    skipVersionCheck: true,
  };
  const worker = new Worker(queue, null, { connection: { url }, ...settings });
  onTestFinished(() => worker.close(true));
  return worker;
}

/**
 * Takes a job that another worker of the queue has not taken, and does not end it. Returns its id.
 */
async function takeJob(worker: Worker): Promise<string> {
  for (;;) {
    const job = await worker.getNextJob('of a worker that dies', { block: false });
    if (job?.id !== undefined) return job.id;
    await sleep(5);
  }
}

/**
 * Lets the worker find the job of a dead one, as after the half minute in which its lock, and the
 * pause between two checks, expire. Rejects if that fails.
 */
async function findStalled(worker: Worker, admin: Redis, job: string): Promise<void> {
  const found = new Promise<void>((resolve, reject) => {
    worker.on('error', reject).on('stalled', (id) => {
      if (id === job) resolve();
    });
  });
  await admin.del(`bull:${worker.name}:${job}:lock`, `bull:${worker.name}:stalled-check`);
  await worker.startStalledCheckTimer();
  await found;
}

/** Enqueues a job while the ledger cannot be written. */
async function postponeJob(world: World): Promise<void> {
  limitFileSize(world.server.pid(), 1);
  const job = world.enqueue();
  await untilLogged(world, 'intake.postponed');
  limitFileSize(world.server.pid(), 'unlimited');
  await job;
}
