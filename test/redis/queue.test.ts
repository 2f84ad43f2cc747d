import { Worker } from 'bullmq';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { EVENTS_QUEUE } from '../../src/redis/connections.ts';
import { createQueueChannel } from '../../src/redis/events-queue.ts';
import { describeChannel, type Rig } from '../notifications/channel-conformance.ts';
import { failedEvent, outgoing } from '../notifications/sample-events.ts';
import { CLIENT_NAME, openQueue, openRedisClient } from '../support/redis/bullmq-rig.ts';
import { isRedisMissing, type RedisServer, redisForTest } from '../support/redis/redis-server.ts';
import { deadAddress } from '../support/servers/upstream-server.ts';
import { eventually, until } from '../support/until.ts';

const PASSWORD = 'redis-S3cret';

async function rig(server?: RedisServer) {
  const redis = server ?? (await redisForTest({ password: PASSWORD }));
  const channel = createQueueChannel({ url: redis.url });
  onTestFinished(() => channel.close());
  const send = (...events: Parameters<typeof outgoing>[0][]) =>
    channel.send(events.map(outgoing), new AbortController().signal);
  return { redis, channel, send, redisClient: openRedisClient(redis) };
}

async function workingRig(): Promise<Rig> {
  const { redis, channel, redisClient } = await rig();
  const queue = openQueue(redis, EVENTS_QUEUE);
  const connections = async () => {
    const clients = String(await redisClient.client('LIST')).split('\n');
    return clients.filter(
      (line) => line.includes(' name=') && !line.includes(` name=${CLIENT_NAME}`),
    ).length;
  };
  const received = async () =>
    (await queue.getJobs(['waiting'])).map(({ data }) => JSON.stringify(data));
  return { channel, received, connections };
}

describe.skipIf(isRedisMissing())('with Redis', () => {
  describeChannel('the queue', {
    working: workingRig,
    failing: async () => {
      // Redis has no memory left and refuses writes.
      const { channel, redisClient } = await rig();
      await redisClient.config('SET', 'maxmemory', '1');
      return { channel, received: () => [], connections: () => 0 };
    },
    hanging: async () => {
      const { redis, channel, send } = await rig();
      await send(failedEvent());
      redis.pause();
      return { channel, received: () => [], connections: () => 1 };
    },
    absent: async () => {
      const { port } = new URL(await deadAddress());
      const channel = createQueueChannel({
        url: `redis://:${PASSWORD}@127.0.0.1:${port}`,
      });
      return { channel, received: () => [], connections: () => 0 };
    },
    secrets: [PASSWORD, '127.0.0.1'],
    messagesOfThree: 3,
    expectHarmless: (message) => expect(Buffer.byteLength(message)).toBeLessThan(20_000),
  });

  it("a worker receives each event once: its type as the job's name, its id as the job's id, its body as the data", async () => {
    const { redis, send } = await rig();
    const jobs: { id: string | undefined; name: string; data: unknown }[] = [];
    const worker = new Worker(
      EVENTS_QUEUE,
      async ({ id, name, data }) => void jobs.push({ id, name, data }),
      {
        connection: { url: redis.url },
      },
    );
    onTestFinished(() => worker.close());
    const events = [failedEvent(), failedEvent()];
    await send(...events);
    await eventually(() => expect(jobs).toHaveLength(2));
    expect(jobs.toSorted((a, b) => Number(a.id?.slice(4)) - Number(b.id?.slice(4)))).toEqual(
      events.map((event) => ({
        id: event.id,
        name: 'submission.failed',
        data: JSON.parse(outgoing(event).json),
      })),
    );
  });

  it('a repeat adds no second job, even for a completed one', async () => {
    const { redis, send } = await rig();
    const event = failedEvent();
    const done: (string | undefined)[] = [];
    const worker = new Worker(EVENTS_QUEUE, async ({ id }) => void done.push(id), {
      connection: { url: redis.url },
    });
    onTestFinished(() => worker.close());
    await send(event, event);
    const queue = openQueue(redis, EVENTS_QUEUE);
    await eventually(async () => expect(await queue.getCompletedCount()).toBe(1));
    expect(await send(event)).toMatchObject({ kind: 'delivered' });
    const last = failedEvent();
    await send(last);
    await eventually(async () => expect(await queue.getCompletedCount()).toBe(2));
    expect(done).toEqual([event.id, last.id]);
  });

  it('names why Redis refuses events', async () => {
    const { send, redisClient } = await rig();
    await redisClient.config('SET', 'maxmemory', '1');
    expect(await send(failedEvent())).toMatchObject({
      kind: 'failed',
      error: expect.stringMatching(/^Redis refuses the events: OOM /),
    });
  });

  it('fails while Redis is unreachable, and delivers again afterwards', async () => {
    const { redis, send } = await rig();
    const errorLog = vi.spyOn(console, 'error');
    onTestFinished(() => errorLog.mockRestore());
    await send(failedEvent());
    await redis.kill();
    const outage = {
      kind: 'failed',
      error: 'Redis is not reachable',
      slowDown: { retryAfterMs: null },
    };
    expect(await send(failedEvent())).toMatchObject(outage);
    expect(await send(failedEvent())).toMatchObject(outage);
    await redis.restart();
    const event = failedEvent();
    await eventually(async () => expect(await send(event)).toMatchObject({ kind: 'delivered' }));
    expect(errorLog).not.toHaveBeenCalled();
    expect(await openQueue(redis, EVENTS_QUEUE).getWaitingCount()).toBe(1);
  });

  it('delivers an event when a replica has confirmed it, and once', async () => {
    const settings = { 'repl-diskless-sync-delay': '0' };
    const { redis, send, redisClient } = await rig(
      await redisForTest({ password: PASSWORD, settings }),
    );
    const replica = await redisForTest({ password: PASSWORD, settings: { masterauth: PASSWORD } });
    const replicaClient = openRedisClient(replica);
    await replicaClient.replicaof('127.0.0.1', redis.port);
    await until(async () => (await redisClient.info('replication')).includes('state=online'));
    const event = failedEvent();
    replica.pause();
    expect(await send(event)).toMatchObject({
      kind: 'failed',
      error: expect.stringMatching(/no replica/),
    });
    replica.resume();
    expect(await send(event)).toMatchObject({ kind: 'delivered' });
    expect(await replicaClient.exists(`bull:${EVENTS_QUEUE}:${event.id}`)).toBe(1);
    expect(await openQueue(redis, EVENTS_QUEUE).getWaitingCount()).toBe(1);
  });

  it('adds nothing while 100,000 jobs wait', async () => {
    const { redis, send, redisClient } = await rig();
    const fill = "for i = 1, tonumber(ARGV[1]) do redis.call('RPUSH', KEYS[1], i) end";
    const waiting = `bull:${EVENTS_QUEUE}:wait`;
    await redisClient.eval(fill, 1, waiting, 99_999);
    expect(await send(failedEvent())).toMatchObject({ kind: 'delivered' });
    expect(await send(failedEvent())).toEqual({
      kind: 'failed',
      httpStatus: null,
      error: 'the queue dawatch-events has 100000 waiting jobs and no consumer',
      response: null,
      slowDown: { retryAfterMs: null },
    });
    expect(await openQueue(redis, EVENTS_QUEUE).getWaitingCount()).toBe(100_000);
  });
});
