import { describe, expect, it, onTestFinished } from 'vitest';
import { EVENTS_QUEUE, SUBMISSIONS_QUEUE } from '../../src/redis/connections.ts';
import { createQueueChannel } from '../../src/redis/events-queue.ts';
import { IntakeWorker } from '../../src/redis/intake.ts';
import { failedEvent, outgoing } from '../notifications/sample-events.ts';
import {
  LEASE_MS,
  openEngine,
  openQueue,
  openRedisClient,
  openWorker,
  PENDING,
  recordLog,
} from '../support/redis/bullmq-rig.ts';
import { isRedisMissing, redisForTest } from '../support/redis/redis-server.ts';
import { startCuttingProxy } from '../support/servers/cutting-proxy.ts';
import { deadAddress } from '../support/servers/upstream-server.ts';
import { eventually, until } from '../support/until.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

/** Redis 6.2 quotes the error of a script in one of its own. */
const asRedis62 = (responses: string) =>
  responses.replaceAll(
    /^-(READONLY .*?) script: ([0-9a-f]{40}), on (@user_script:\d+)\.\r$/gm,
    '-ERR Error running script (call to f_$2): $3: @user_script: 1: -$1\r',
  );

describe.skipIf(isRedisMissing())('with Redis', () => {
  it('Redis crashes during a batch: nothing is polled twice, later batches are polled by this process', async () => {
    const redis = await redisForTest();
    const clock = new HeldClock(LEASE_MS / 2);
    const server = openEngine(redis, { clock });
    const inFlight = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    const worker = openWorker(redis, {
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
    clock.fireAll();
    expect(await out).toEqual([]);
    expect(server.polled).toEqual(['b']);
    await redis.restart();
    await server.sees(1);
    await server.pollByWorker('c');
    expect(worker.polled).toEqual(['a', 'c']);
  });

  it('a database that Redis does not have is not replaced by database 0', async () => {
    const { url } = await redisForTest();
    const server = openEngine({ url: `${url}/99` });
    const worker = openWorker({ url: `${url}/99` });
    await server.isDisconnected();
    expect(server.logged[0]?.message).toMatch(/DB index is out of range/);
    await until(() => worker.logged.length > 0);
    expect(worker.logged[0]?.message).toMatch(/DB index is out of range/);
    expect(server.link.health.state).toBe('disconnected');
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

  it.each<[string, Record<string, string>?, typeof asRedis62?]>([
    ['a replica whose scripts report it as Redis 6.2 does', {}, asRedis62],
    ['a replica that has lost its primary', { 'replica-serve-stale-data': 'no' }],
  ])('%s is left for the primary to which its name leads', async (_, settings = {}, rewrite) => {
    const [former, next] = [await redisForTest({ settings }), await redisForTest()];
    const proxy = await startCuttingProxy(former.url, rewrite);
    const name = { url: proxy.url.replace('http:', 'redis:') };
    const server = openEngine(name);
    openWorker(name, { name: 'w-1' });
    const channel = createQueueChannel(name);
    onTestFinished(() => channel.close());
    const intake = new IntakeWorker({
      redis: name,
      track: async () => ({ kind: 'tracked', submissions: [] }),
      log: recordLog().log,
    });
    onTestFinished(() => intake.close(2_000));
    await server.sees(1);
    expect(await server.poll('a')).toMatchObject([{ worker: 'w-1' }]);

    proxy.lead(next.url);
    const formerClient = openRedisClient(former);
    const clients = String(await formerClient.client('LIST')).split('\n');
    const reader = /^id=(\d+) /.exec(clients.find((one) => one.includes('cmd=xread ')) ?? '')?.[1];
    const { port } = new URL(await deadAddress());
    // Redis closes connections that wait for it, but not one that only reads and waits afterwards.
    await formerClient
      .multi()
      .client('UNBLOCK', Number(reader))
      .replicaof('127.0.0.1', port)
      .exec();

    const submissions = openQueue(next, SUBMISSIONS_QUEUE);
    await submissions.add('track', { submission_id: 'c' }, { jobId: 'track-c' });
    const event = outgoing(failedEvent());
    const send = () => channel.send([event], new AbortController().signal);
    await eventually(async () => expect((await send()).kind).toBe('delivered'));
    expect(await openQueue(next, EVENTS_QUEUE).getJob(event.event.id)).toBeDefined();
    const connections = () => server.logged.filter(({ msg }) => msg === 'redis.connected');
    await until(() => connections().length === 2);
    await server.sees(1);
    await server.pollByWorker('b');
    await eventually(async () => expect(await submissions.getCompletedCount()).toBe(1));
  });
});
