import { randomUUID } from 'node:crypto';
import { Worker } from 'bullmq';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/lib/system-clock.ts';
import { FencingTokenStore } from '../../src/redis/fencing-token.ts';
import { MessageSigner, POLLS_QUEUE } from '../../src/redis/messages.ts';
import { untilPreviousPollsEnded } from '../../src/redis/redis-link.ts';
import { openEngine, openQueue, openRedisClient } from '../support/redis/bullmq-rig.ts';
import { isRedisMissing, type RedisServer, redisForTest } from '../support/redis/redis-server.ts';

const LONG = 60_000;

/** A starting server; reports when no earlier jobs are left. */
function start(redis: { url: string }, { leasesLastMs = LONG, timeoutMs = LONG } = {}) {
  const { engine, link, isUp } = openEngine(redis);
  const state = { isAlone: false };
  const closing = new AbortController();
  onTestFinished(() => closing.abort());
  const { signal } = closing;
  const alone = untilPreviousPollsEnded({
    queue: engine.queue,
    link,
    clock: systemClock,
    leasesLastMs,
    timeoutMs,
    signal,
  });
  void alone.then(() => {
    state.isAlone = true;
  });
  return { state, alone, isUp };
}

/** Issues a fencing token, as the previous server did. */
async function issueFencingToken(redis: RedisServer): Promise<void> {
  const fencingTokens = new FencingTokenStore(openRedisClient(redis), { prefix: 'bull' });
  await fencingTokens.issue((await fencingTokens.read()).runId, new MessageSigner(undefined));
}

/** Adds two jobs of a previous server, one waiting and one that a worker processes. */
async function addEarlierJobs(redis: RedisServer) {
  const queue = openQueue(redis);
  await issueFencingToken(redis);
  const [seconds] = await openRedisClient(redis).time();
  const data = {
    upstream: 'default',
    submission_ids: ['a'],
    fencing_token: 'an earlier one',
    expires_at: Number(seconds) * 1_000 + LONG,
    timeout_ms: 1_000,
  };
  const worker = new Worker(POLLS_QUEUE, null, { connection: { url: redis.url } });
  worker.on('error', () => undefined);
  onTestFinished(() => worker.close());
  await queue.add('poll', data, { jobId: `j-${randomUUID()}` });
  const job = await worker.getNextJob('token');
  await queue.add('poll', data, { jobId: `j-${randomUUID()}` });
  return { queue, end: () => job?.moveToCompleted({ polled: [] }, 'token', false) };
}

describe.skipIf(isRedisMissing())('a starting server with Redis', () => {
  it('waits for the leases of jobs that workers still process, and removes waiting jobs', async () => {
    const redis = await redisForTest();
    const { queue, end } = await addEarlierJobs(redis);
    const { state, alone, isUp } = start(redis);
    await isUp();
    await vi.waitFor(async () => expect(await queue.getWaitingCount()).toBe(0), 5_000);
    expect(state.isAlone).toBe(false);
    await end();
    await alone;
  });

  it('waits no longer than a request can take', async () => {
    const redis = await redisForTest();
    await addEarlierJobs(redis);
    await start(redis, { timeoutMs: 200 }).alone;
  });

  it.each(['was emptied', 'was restarted'])(
    'a Redis that %s does not know what is in flight: the server waits for as long as a request can take',
    async (how) => {
      const redis = await redisForTest({ keeps: true });
      await issueFencingToken(redis);
      if (how === 'was emptied') await openRedisClient(redis).flushall();
      else await redis.restart();
      const { state, alone, isUp } = start(redis, { timeoutMs: 1_000 });
      await isUp();
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect(state.isAlone).toBe(false);
      await alone;
    },
  );
});

it('without Redis, waits until the leases of an earlier process have expired', async () => {
  await start({ url: 'redis://127.0.0.1:1' }, { leasesLastMs: 300 }).alone;
});
