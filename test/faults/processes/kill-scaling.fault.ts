import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { QueueEvents } from 'bullmq';
import type { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { sleep } from '../../support/processes/killable-server.ts';
import { createUsers, deniedSince } from '../../support/redis/acl.ts';
import { openRedisClient } from '../../support/redis/bullmq-rig.ts';
import { openProducer, recordEvents } from '../../support/redis/producer.ts';
import { isRedisMissing, redisForTest } from '../../support/redis/redis-server.ts';
import { allDelivered, eventIdsOf } from '../../support/servers/deliveries.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';
import { prepareWorld } from '../support/world.ts';

const KILLS = 8;
/** The kills before which Redis is killed, or emptied. */
const REDIS_KILL = 3;
const FLUSH = 6;
const SUBMISSIONS = KILLS * 50;
const BATCH = 25;
/** Requests per second of the server's clock. */
const LIMIT = 400;

test.skipIf(isRedisMissing())(
  `${KILLS} kills -9 of workers and server, one of Redis, and FLUSHALL, lose nothing that was acknowledged, with the documented users of Redis`,
  async () => {
    const aclfile = join(tempFolder(), 'users.acl');
    writeFileSync(aclfile, '');
    const redis = await redisForTest({ keeps: true, settings: { aclfile } });
    const admin = openRedisClient(redis);
    const users = await createUsers(admin, redis.url);
    await admin.call('ACL', 'SAVE');
    const world = await prepareWorld('kills of server and workers', {
      // The limit equals the configured budget. A response takes 0.1 s, so that kills hit many
      // requests in flight.
      sandbox: { rateLimit: LIMIT, rateLimitPerS: 40, latencyMs: 4_000 },
      upstream: { budget: { requests: LIMIT, per_s: 1, concurrency: 64 } },
      redisUrl: users.server,
      workerRedisUrl: users.worker,
      workers: 3,
    });
    const { server, workers, sandbox, expected, between } = world;
    const pause = (min: number, max: number) => sleep(between(min, max));
    await world.start();
    const targets = [server, ...workers];
    const consumed = recordEvents({ url: users.consumer });
    let hasResult = false;
    const polls = new QueueEvents('dawatch-polls', { connection: { url: redis.url } });
    polls
      .on('error', () => undefined)
      .once('completed', () => {
        hasResult = true;
      });
    onTestFinished(() => polls.close());
    await polls.waitUntilReady();

    const given = new AbortController();
    onTestFinished(() => given.abort());
    const producer = openProducer({ url: users.producer });
    const jobs: Promise<void>[] = [];
    // Before each kill, so that it interrupts work however slow the machine is.
    const enqueue = () => {
      for (let count = 0; count < SUBMISSIONS / KILLS; count += BATCH) {
        const ids = world.submit(BATCH);
        const job = producer.enqueue(ids, given.signal).then(() => {
          for (const id of ids) expected.set(id, 'finalized');
        });
        job.catch(() => undefined);
        jobs.push(job);
      }
    };
    const destroyed = new Set<string>();
    for (let kill = 0; kill < KILLS; kill++) {
      const enough = sandbox.stats().requests + 3;
      enqueue();
      await until(() => sandbox.stats().requests >= enough);
      // Later, the server may poll itself what a kill has taken from the workers.
      if (kill === 0) await until(() => hasResult);
      await pause(0, 900);
      if (kill === REDIS_KILL) {
        await redis.kill();
        await pause(0, 1_500);
        await redis.restart();
      }
      if (kill === FLUSH) for (const id of await flush(admin)) destroyed.add(id);
      const target = targets[between(0, targets.length - 1)];
      await target?.kill();
      target?.start();
    }
    await Promise.all(jobs);
    await server.listening();
    await allDelivered(server.file, SUBMISSIONS);
    const events = eventIdsOf(server.file);
    const isMissing = (id: string) => !consumed.has(id) && !destroyed.has(id);
    await until(() => !events.some(isMissing));

    expect(expected.size).toBe(SUBMISSIONS);
    // A restarted Redis has an empty log.
    expect(await deniedSince(admin)).toEqual([]);
    // Every event reached the consumer of the queue, except those that FLUSHALL deleted before.
    expect(events.filter(isMissing)).toEqual([]);
    expect(
      [...consumed].filter(([id, bodies]) => bodies.size !== 1 || !events.includes(id)),
    ).toEqual([]);
    await world.expectSurvived();
    // Despite all kills, the upstream never received more than its limit.
    expect(sandbox.stats()).toMatchObject({ throttled: 0 });
    expect(sandbox.stats().maxRequestsPerWindow).toBeLessThanOrEqual(LIMIT);
  },
);

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
