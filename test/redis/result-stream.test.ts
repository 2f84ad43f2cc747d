import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/lib/system-clock.ts';
import { ResultStream } from '../../src/redis/engine.ts';
import { POLLS_QUEUE } from '../../src/redis/messages.ts';
import { openRedisClient } from '../support/redis/bullmq-rig.ts';
import { isRedisMissing, redisForTest } from '../support/redis/redis-server.ts';

const EVENTS = `bull:${POLLS_QUEUE}:events`;

/** A stream that is read from now on, and its reports. */
async function openStream() {
  const redis = await redisForTest();
  const redisClient = openRedisClient(redis);
  const completed: string[] = [];
  const stream = new ResultStream({
    redis: { url: redis.url, prefix: 'bull' },
    clock: systemClock,
    listener: {
      progress: (jobId) => void completed.push(`progress ${jobId}`),
      completed: (jobId) => void completed.push(jobId),
      failed: (jobId) => void completed.push(`failed ${jobId}`),
    },
  });
  onTestFinished(() => stream.close());
  const [seconds] = await redisClient.time();
  stream.readFrom(Number(seconds) * 1_000 - 1_000);
  await vi.waitUntil(() => stream.isReading, 5_000);
  const done = (jobId: string) => ['event', 'completed', 'jobId', jobId, 'returnvalue', '{}'];
  return { redis, client: redisClient, stream, completed, done };
}

describe.skipIf(isRedisMissing())('the result stream', () => {
  it.each<[string, string[]]>([
    ['progress that is not JSON', ['event', 'progress', 'jobId', 'x', 'data', '{']],
    ['no job', ['event', 'completed', 'returnvalue', '{}']],
  ])('an entry with %s does not affect entries read together with it', async (_what, garbage) => {
    const { client: redisClient, completed, done } = await openStream();
    const both = redisClient.multi();
    both.xadd(EVENTS, '*', ...done('before'));
    both.xadd(EVENTS, '*', ...garbage);
    both.xadd(EVENTS, '*', ...done('after'));
    await both.exec();
    await vi.waitFor(
      () => expect(completed).toEqual(expect.arrayContaining(['before', 'after'])),
      5_000,
    );
  });

  it('a read that Redis refuses for a while skips no later entry', async () => {
    const { client: redisClient, stream, completed, done } = await openStream();
    await redisClient.xadd(EVENTS, '*', ...done('first'));
    await vi.waitFor(() => expect(completed).toEqual(['first']), 5_000);
    await redisClient.acl('SETUSER', 'default', '-xread');
    await redisClient.xadd(EVENTS, '*', ...done('second'));
    await vi.waitFor(() => expect(stream.isReading).toBe(false), 15_000);
    await redisClient.xadd(EVENTS, '*', ...done('third'));
    await redisClient.acl('SETUSER', 'default', '+xread');
    await vi.waitFor(() => expect(completed).toEqual(['first', 'second', 'third']), 15_000);
  });
});
