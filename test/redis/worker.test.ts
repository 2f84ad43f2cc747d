import { randomUUID } from 'node:crypto';
import { type Job, Worker } from 'bullmq';
import { describe, expect, it } from 'vitest';
import { POLLS_QUEUE, readServer } from '../../src/redis/connections.ts';
import type { PollJob } from '../../src/redis/polls-queue.ts';
import type { Classification } from '../../src/submissions/classify.ts';
import { openQueue, openRedisClient, openWorker, PENDING } from '../support/redis/bullmq-rig.ts';
import { isRedisMissing, type RedisServer, redisForTest } from '../support/redis/redis-server.ts';
import { eventually, until } from '../support/until.ts';

/** The server's side, whose jobs the test adds explicitly. */
async function openServer(redis: RedisServer) {
  const redisClient = openRedisClient(redis);
  const queue = openQueue(redis);
  async function addJob(more: Partial<PollJob> = {}): Promise<Job> {
    const { runId, nowMs } = await readServer(redisClient);
    const data = { upstream: 'default', submission_ids: ['a'], run_id: runId };
    const job: PollJob = { ...data, expires_at: nowMs + 600_000, ...more };
    return queue.add('poll', job, { jobId: randomUUID() });
  }
  const ended = async (job: Job): Promise<Job> =>
    eventually(async () => {
      const found = await queue.getJob(job.id ?? '');
      if (!found?.finishedOn) throw new Error('not yet');
      return found;
    });
  return { redisClient, queue, addJob, ended };
}

describe.skipIf(isRedisMissing())('a worker', () => {
  it('polls nothing of a job that expires before a request could complete', async () => {
    const redis = await redisForTest();
    const server = await openServer(redis);
    const worker = openWorker(redis, { timeoutMs: 600_000 });
    const { nowMs } = await readServer(server.redisClient);
    const job = await server.ended(await server.addJob({ expires_at: nowMs + 600_000 }));
    expect(job.failedReason).toMatch(/the job came too late/);
    expect(worker.polled).toEqual([]);
  });

  it('polls no jobs of a previous Redis process, which may have been polled', async () => {
    const redis = await redisForTest({ keeps: true });
    const server = await openServer(redis);
    await server.queue.pause();
    const old = await server.addJob();
    await redis.restart();
    const worker = openWorker(redis);
    await eventually(() => server.queue.resume());
    expect((await server.ended(old)).failedReason).toMatch(/Redis has restarted/);
    expect(worker.polled).toEqual([]);
  });

  it('does not poll a stalled job again', async () => {
    const redis = await redisForTest();
    const server = await openServer(redis);
    const job = await server.addJob();
    const watch = { lockDuration: 50, stalledInterval: 50, maxStalledCount: 0 };
    const dead = new Worker(POLLS_QUEUE, null, {
      connection: { url: redis.url },
      ...watch,
      skipLockRenewal: true,
    });
    dead.on('error', () => undefined);
    await dead.getNextJob('token', { block: false });
    await dead.startStalledCheckTimer();
    const worker = openWorker(redis);
    expect((await server.ended(job)).failedReason).toMatch(/stalled/);
    expect(worker.polled).toEqual([]);
    await dead.close(true);
  });

  it('completes its requests in flight when it is stopped, and starts no more', async () => {
    const redis = await redisForTest();
    const server = await openServer(redis);
    const started = Promise.withResolvers<void>();
    const held = Promise.withResolvers<Classification>();
    const first = openWorker(redis, {
      sendPoll: async () => {
        started.resolve();
        return held.promise;
      },
    });
    const current = await server.addJob();
    await started.promise;
    const closing = first.close(10_000);
    const next = await server.addJob({ submission_ids: ['b'] });
    held.resolve(PENDING);
    await closing;
    expect((await server.ended(current)).returnvalue).toMatchObject({
      observations: [{ submissionId: 'a', kind: 'pending' }],
    });
    const second = openWorker(redis);
    await server.ended(next);
    expect([first.polled, second.polled]).toEqual([['a'], ['b']]);
  });

  it('waits for a Redis that is not running yet, and reconnects after an outage', async () => {
    const redis = await redisForTest({ keeps: true });
    await redis.kill();
    const worker = openWorker(redis);
    await eventually(() => expect(worker.logged).toMatchObject([{ msg: 'redis.disconnected' }]));
    await redis.restart();
    const server = await openServer(redis);
    await server.ended(await server.addJob());
    await redis.restart();
    const later = await openServer(redis);
    await later.ended(await later.addJob({ submission_ids: ['b'] }));
    expect(worker.polled).toEqual(['a', 'b']);
  });

  it('reports once that Redis denies it a command', async () => {
    const redis = await redisForTest();
    const server = await openServer(redis);
    await server.redisClient.acl('SETUSER', 'default', '-bzpopmin');
    const worker = openWorker(redis);
    const denials = () =>
      worker.logged.filter(({ msg, message }) =>
        msg === 'redis.disconnected' ? /permission/.test(String(message)) : false,
      );
    await until(async () =>
      /"count",(?:[3-9]|\d\d)/.test(JSON.stringify(await server.redisClient.acl('LOG'))),
    );
    await eventually(() => expect(denials()).toHaveLength(1));
    expect(denials()).toHaveLength(1);
  });
});
