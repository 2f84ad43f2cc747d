import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { QueueEvents } from 'bullmq';
import type { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { startSandbox } from '../../../src/sandbox/server.ts';
import { prepareServer, prepareWorker, sleep } from '../../support/processes/killable-server.ts';
import { createUsers, deniedSince } from '../../support/redis/acl.ts';
import { openRedisClient } from '../../support/redis/bullmq-rig.ts';
import { openProducer, recordEvents } from '../../support/redis/producer.ts';
import {
  isRedisMissing,
  type RedisServer,
  redisForTest,
} from '../../support/redis/redis-server.ts';
import { seeded } from '../../support/seed.ts';
import { allDelivered, createWebhook, eventIdsOf } from '../../support/servers/deliveries.ts';
import { openEventReceiver } from '../../support/servers/event-receiver.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { allFinalized, auditAfterFault } from '../support/audit.ts';

const KILLS = 20;
/** The kills before which Redis is killed, or emptied. */
const REDIS_KILLS = [6, 16];
const FLUSH = 11;
const SUBMISSIONS = 3_000;
const BATCH = 25;
/** Requests per second of the server's clock. */
const LIMIT = 400;

test.skipIf(isRedisMissing())(
  `${KILLS} kills -9 of workers and server, ${REDIS_KILLS.length} of Redis, and FLUSHALL, lose nothing that was acknowledged, with the documented users of Redis`,
  async () => {
    const { seed, between } = seeded('kills of server and workers');
    const pause = (min: number, max: number) => sleep(between(min, max));
    const folder = tempFolder();
    const aclfile = join(tempFolder(), 'users.acl');
    writeFileSync(aclfile, '');
    const redis = await redisForTest({ keeps: true, settings: { aclfile } });
    const admin = openRedisClient(redis);
    const users = await createUsers(admin, redis.url);
    await admin.call('ACL', 'SAVE');
    // The limit equals the configured budget. A response takes 0.1 s, so that kills hit many requests
    // in flight.
    const limit = { rateLimit: LIMIT, rateLimitPerS: 40, latencyMs: 4_000 };
    const sandbox = await startSandbox({ options: { seed, speed: 40, errorRate: 0.1, ...limit } });
    onTestFinished(() => sandbox.close());
    const budget = { requests: LIMIT, per_s: 1, concurrency: 64 };
    const settings = (user: string) => ({
      upstreams: {
        default: {
          ...{ url: sandbox.url, api_key: 'sandbox-key', timeout_s: 0.5, budget },
          lag_price: 1_000,
        },
      },
      redis: { url: user },
    });
    const server = await prepareServer(folder, {
      ...settings(users.server),
      webhooks: { allow: ['127.0.0.0/8'], allow_http: true },
      log: { level: 'silent' },
    });
    const workers = ['one', 'two', 'three'].map((name) =>
      prepareWorker(folder, name, settings(users.worker)),
    );
    const targets = [server, ...workers];
    for (const target of targets) target.start();
    await server.listening();
    const receiver = await openEventReceiver();
    receiver.secret = await createWebhook(server.url, receiver.url);
    const consumed = recordEvents({ url: users.consumer });
    const resultCount = countResults(redis);

    const acknowledged = new Set<string>();
    const given = new AbortController();
    onTestFinished(() => given.abort());
    const tracking = enqueueAll(
      users.producer,
      () => sandbox.model.submit('data', Date.now()),
      acknowledged,
      given.signal,
    );
    const destroyed = new Set<string>();
    for (let kill = 0; kill < KILLS; kill++) {
      await untilResults(resultCount, 3);
      await pause(0, 900);
      if (REDIS_KILLS.includes(kill)) {
        await redis.kill();
        await pause(0, 1_500);
        await redis.restart();
      }
      if (kill === FLUSH) for (const id of await flush(admin)) destroyed.add(id);
      const target = targets[between(0, targets.length - 1)];
      await target?.kill();
      target?.start();
    }
    const resultsBetweenKills = resultCount();
    await tracking;
    await server.listening();
    await allDelivered(server.file, SUBMISSIONS);
    const events = eventIdsOf(server.file);
    const isMissing = (id: string) => !consumed.has(id) && !destroyed.has(id);
    for (let tried = 0; tried < 200 && events.some(isMissing); tried++) await sleep(100);
    for (const worker of workers) await worker.kill();

    expect(acknowledged.size).toBe(SUBMISSIONS);
    // Otherwise the kills hit idle workers and prove nothing.
    expect(resultsBetweenKills).toBeGreaterThan(KILLS);
    // A restarted Redis has an empty log.
    expect(await deniedSince(admin)).toEqual([]);
    // Every event reached the consumer of the queue, except those that FLUSHALL deleted before.
    expect(events.filter(isMissing)).toEqual([]);
    expect(
      [...consumed].filter(([id, bodies]) => bodies.size !== 1 || !events.includes(id)),
    ).toEqual([]);
    await auditAfterFault({ server, expected: allFinalized(acknowledged), receiver });
    // Despite all kills, the upstream never received more than its limit.
    expect(sandbox.stats()).toMatchObject({ throttled: 0 });
    expect(sandbox.stats().maxRequestsPerWindow).toBeLessThanOrEqual(LIMIT);
  },
);

async function enqueueAll(
  url: string,
  submit: () => string,
  acknowledged: Set<string>,
  signal: AbortSignal,
): Promise<void> {
  const producer = openProducer({ url });
  const jobs: Promise<void>[] = [];
  for (let given = 0; given < SUBMISSIONS; given += BATCH) {
    const ids = Array.from({ length: BATCH }, submit);
    const job = producer.enqueue(ids, signal).then(() => {
      for (const id of ids) acknowledged.add(id);
    });
    job.catch(() => undefined);
    jobs.push(job);
    await sleep(80);
  }
  await Promise.all(jobs);
}

/** Empties Redis, and returns the events that no consumer had taken. */
async function flush(admin: Redis): Promise<string[]> {
  const lists = ['wait', 'active'].map((list) => `bull:dawatch-events:${list}`);
  const found = await admin
    .multi()
    .lrange(lists[0] ?? '', 0, -1)
    .lrange(lists[1] ?? '', 0, -1)
    .flushall()
    .exec();
  return found?.slice(0, 2).flatMap(([, ids]) => ids as string[]) ?? [];
}

/**
 * Waits until workers returned the given number of further batches, with a time limit in case no
 * worker is running.
 */
async function untilResults(resultCount: () => number, more: number): Promise<void> {
  const enough = resultCount() + more;
  for (let tried = 0; tried < 150 && resultCount() < enough; tried++) await sleep(20);
}

/** Returns the number of batches that workers returned. */
function countResults(redis: RedisServer): () => number {
  let count = 0;
  const events = new QueueEvents('dawatch-polls-3', {
    connection: { url: redis.url, retryStrategy: () => 200 },
  });
  events.on('error', () => undefined).on('completed', () => (count += 1));
  onTestFinished(() => events.close());
  return () => count;
}
