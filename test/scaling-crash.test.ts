import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { QueueEvents } from 'bullmq';
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startSandbox } from '../src/sandbox/server.ts';
import { auditLedger } from './support/audit.ts';
import { lookInto } from './support/bullmq-rig.ts';
import { recordEvents } from './support/event-recorder.ts';
import { prepareServer, sleep } from './support/killable-server.ts';
import { prepareWorker } from './support/killable-worker.ts';
import { openProducer } from './support/producer.ts';
import { openReceiver } from './support/receiver.ts';
import { isRedisMissing, type RedisServer, redisForTest } from './support/redis-server.ts';
import { allTold, createWebhook, eventIdsOf } from './support/told.ts';

const SUBMISSIONS = 5_000;
const BATCH = 25;
const KILLS = 20;
/** Before which of the kills Redis is killed, and emptied. */
const REDIS_KILLS = [6, 14];
const FLUSH = 10;
/** In a second of the server's time. */
const LIMIT = 400;

describe.skipIf(isRedisMissing())('with Redis', () => {
  test('kill -9 of workers, server and Redis, and FLUSHALL, lose nothing that was acknowledged', {
    timeout: 240_000,
  }, async () => {
    const seed = Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31);
    console.log(`scaling crash test: TEST_SEED=${seed}`);
    const random = xoroshiro128plus(seed);
    const between = (least: number, most: number) => sleep(uniformInt(random, least, most));
    const folder = mkdtempSync(join(tmpdir(), 'dawatch-scaling-crash-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const redis = await redisForTest({ keeps: true });
    // Its limit is just what the server is told. An answer takes 0.1 s, so that kills meet many that are under way.
    const limit = { rateLimit: LIMIT, rateLimitPerS: 40, latencyMs: 4_000 };
    const sandbox = await startSandbox({ options: { seed, speed: 40, errorRate: 0.1, ...limit } });
    onTestFinished(() => sandbox.close());
    const budget = { requests: LIMIT, per_s: 1, concurrency: 64 };
    const settings = {
      upstreams: { default: { url: sandbox.url, api_key: 'sandbox-key', timeout_s: 0.5, budget } },
      redis: { url: redis.url },
    };
    const server = await prepareServer(folder, {
      ...settings,
      pacing: { min_interval_s: 0.1, max_interval_s: 1 },
      webhooks: { allow: ['127.0.0.0/8'], allow_http: true },
      log: { level: 'silent' },
    });
    const workers = ['one', 'two', 'three'].map((name) => prepareWorker(folder, name, settings));
    const hands = [server, ...workers];
    for (const hand of hands) hand.start();
    await server.listening();
    const receiver = await openReceiver({ status: 204 });
    await createWebhook(server.url, receiver.url);
    const consumed = recordEvents(redis);
    const answered = countAnswered(redis);

    const acknowledged = new Set<string>();
    const given = new AbortController();
    onTestFinished(() => given.abort());
    const tracking = enqueueAll(redis, () => sandbox.model.submit('data', Date.now()), acknowledged, given.signal);
    const destroyed = new Set<string>();
    for (let kill = 0; kill < KILLS; kill++) {
      await between(200, 1_500);
      if (REDIS_KILLS.includes(kill)) {
        await redis.kill();
        await between(0, 1_500);
        await redis.restart();
      }
      if (kill === FLUSH) for (const id of await flush(redis)) destroyed.add(id);
      const hand = hands[uniformInt(random, 0, hands.length - 1)];
      await hand?.kill();
      hand?.start();
    }
    const answeredBetweenKills = answered();
    await tracking;
    await server.listening();
    await allTold(server.file, SUBMISSIONS);
    const events = eventIdsOf(server.file);
    const isMissing = (id: string) => !consumed.has(id) && !destroyed.has(id);
    for (let tried = 0; tried < 200 && events.some(isMissing); tried++) await sleep(100);
    for (const hand of hands) await hand.kill();

    expect(acknowledged.size).toBe(SUBMISSIONS);
    // Otherwise the kills hit idle workers and prove nothing.
    expect(answeredBetweenKills).toBeGreaterThan(50);
    const statuses = auditLedger(server.file, acknowledged);
    expect([...acknowledged].filter((id) => statuses.get(id) !== 'finalized')).toEqual([]);
    // Every event reached the consumer of the queue, but for those that FLUSHALL took out of its hands.
    expect(events.filter(isMissing)).toEqual([]);
    expect([...consumed].filter(([id, bodies]) => bodies.size !== 1 || !events.includes(id))).toEqual([]);
    const posted = new Set(receiver.requests.map(({ headers }) => headers['webhook-id']));
    expect(events.filter((id) => !posted.has(id))).toEqual([]);
    // Whatever died in between: the upstream never saw more than it grants.
    expect(sandbox.stats()).toMatchObject({ throttled: 0 });
    expect(sandbox.stats().maxRequestsPerWindow).toBeLessThanOrEqual(LIMIT);
  });
});

async function enqueueAll(
  redis: RedisServer,
  submit: () => string,
  acknowledged: Set<string>,
  signal: AbortSignal,
): Promise<void> {
  const producer = openProducer(redis);
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

/** Empties Redis, and gives back the events that nobody had taken by then. */
async function flush(redis: RedisServer): Promise<string[]> {
  const lists = ['wait', 'active'].map((list) => `bull:dawatch-events:${list}`);
  const look = lookInto(redis);
  const found = await look
    .multi()
    .lrange(lists[0] ?? '', 0, -1)
    .lrange(lists[1] ?? '', 0, -1)
    .flushall()
    .exec();
  return found?.slice(0, 2).flatMap(([, ids]) => ids as string[]) ?? [];
}

/** How many batches workers answered. */
function countAnswered(redis: RedisServer): () => number {
  let count = 0;
  const events = new QueueEvents('dawatch-polls', { connection: { url: redis.url, retryStrategy: () => 200 } });
  events.on('error', () => undefined).on('completed', () => (count += 1));
  onTestFinished(() => events.close());
  return () => count;
}
