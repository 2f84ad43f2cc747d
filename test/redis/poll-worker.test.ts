import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Job, Worker } from 'bullmq';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { FencingTokenStore } from '../../src/redis/fencing-token.ts';
import { MessageSigner, POLLS_QUEUE, type PollJob, signedJob } from '../../src/redis/messages.ts';
import type { Classification } from '../../src/submissions/classify.ts';
import { openQueue, openRedisClient, openWorker, PENDING } from '../support/redis/bullmq-rig.ts';
import { isRedisMissing, type RedisServer, redisForTest } from '../support/redis/redis-server.ts';

const SECRET = 'a-secret-of-server-and-workers-0123456789';

/** The server's side, whose jobs the test adds explicitly. */
async function openServer(redis: RedisServer, secret?: string) {
  const signer = new MessageSigner(secret);
  const redisClient = openRedisClient(redis);
  const fencingTokens = new FencingTokenStore(redisClient, { prefix: 'bull' });
  const issue = async () => fencingTokens.issue((await fencingTokens.read()).runId, signer);
  const fencing_token = await issue();
  const queue = openQueue(redis);
  async function addJob(more: Partial<PollJob> = {}): Promise<Job> {
    const { redisMs } = await fencingTokens.read();
    const data = {
      upstream: 'default',
      submission_ids: ['a'],
      fencing_token,
      expires_at: redisMs + 20_000,
      timeout_ms: 1_000,
    };
    const jobId = `j-${randomUUID()}`;
    const job: PollJob = { ...data, ...more };
    return queue.add(
      'poll',
      { signature: signer.sign('job', signedJob(jobId, job)), ...job },
      { jobId },
    );
  }
  const ended = async (job: Job): Promise<Job> =>
    vi.waitFor(async () => {
      const found = await queue.getJob(job.id ?? '');
      if (!found?.finishedOn) throw new Error('not yet');
      return found;
    }, 10_000);
  return { redisClient, issue, queue, addJob, ended };
}

function holding() {
  const started = Promise.withResolvers<void>();
  const held = Promise.withResolvers<Classification>();
  const sendPoll = async () => {
    started.resolve();
    return held.promise;
  };
  return { sendPoll, started: started.promise, respond: () => held.resolve(PENDING) };
}

describe.skipIf(isRedisMissing())('a worker', () => {
  it('with a secret, refuses forged jobs, and a genuine one that is added to Redis again', async () => {
    const redis = await redisForTest();
    const server = await openServer(redis, SECRET);
    const worker = openWorker(redis, { secret: SECRET });
    const genuine = await server.ended(await server.addJob());
    const { signature: _, ...unsigned } = genuine.data;
    const add = (data: object) => server.queue.add('poll', data, { jobId: `j-${randomUUID()}` });
    for (const [forged, reason] of [
      [unsigned, /unsigned/],
      [{ ...genuine.data, submission_ids: ['a', 'stolen'] }, /not signed with/],
      // A copy.
      [genuine.data, /not signed with/],
    ] as const)
      expect((await server.ended(await add(forged))).failedReason).toMatch(reason);
    await genuine.remove();
    const again = await server.queue.add('poll', genuine.data, { jobId: genuine.id ?? '' });
    expect((await server.ended(again)).failedReason).toBe('the job was already started');
    expect(worker.polled).toEqual(['a']);
  });

  it('polls nothing of a job that expires before a request could complete', async () => {
    const redis = await redisForTest();
    const server = await openServer(redis);
    const worker = openWorker(redis, { timeoutMs: 1_000 });
    const [seconds] = await server.redisClient.time();
    const job = await server.ended(
      await server.addJob({ expires_at: Number(seconds) * 1_000 + 1_000 }),
    );
    expect(job.returnvalue).toMatchObject({ polled: [], not_polled: 'late' });
    expect(worker.polled).toEqual([]);
  });

  it('polls no jobs of a previous server process, and none without a fencing token', async () => {
    const redis = await redisForTest();
    const server = await openServer(redis);
    await server.queue.pause();
    const old = await server.addJob();
    await server.issue();
    await server.queue.resume();
    const worker = openWorker(redis);
    expect(await server.ended(old)).toMatchObject({
      failedReason: 'the job was created by another server',
    });
    await server.redisClient.del('bull:dawatch-workers:fencing-token');
    const withoutPolls = await server.ended(await server.addJob());
    expect(withoutPolls.returnvalue).toMatchObject({ polled: [], not_polled: 'emptied' });
    expect(worker.polled).toEqual([]);
  });

  it('polls no jobs of a previous Redis process, even with the same fencing token', async () => {
    const redis = await redisForTest({ keeps: true });
    const server = await openServer(redis);
    await server.queue.pause();
    const old = await server.addJob();
    await redis.restart();
    const worker = openWorker(redis);
    await vi.waitFor(() => server.queue.resume(), 10_000);
    expect(await server.ended(old)).toMatchObject({
      failedReason: 'the job was created by another server',
    });
    expect(worker.polled).toEqual([]);
  });

  it.each<[string, unknown]>([
    ['nothing', null],
    ['too many ids', { submission_ids: Array.from({ length: 51 }, () => 'a') }],
  ])('refuses a job of %s, once', async (_what, garbage) => {
    const redis = await redisForTest();
    const server = await openServer(redis);
    const worker = openWorker(redis);
    const job = await server.queue.add('poll', garbage, { attempts: 5 });
    const { failedReason, attemptsMade } = await server.ended(job);
    expect(failedReason).toBe('the job has an invalid format');
    expect(attemptsMade).toBe(1);
    expect(worker.polled).toEqual([]);
  });

  it('does not start a started job again', async () => {
    const redis = await redisForTest();
    const server = await openServer(redis);
    const bullWorker = new Worker(POLLS_QUEUE, null, { connection: { url: redis.url } });
    bullWorker.on('error', () => undefined);
    onTestFinished(() => bullWorker.close());
    const job = await server.addJob();
    const taken = await bullWorker.getNextJob('token');
    await taken?.moveToDelayed(Date.now(), 'token');
    const worker = openWorker(redis);
    expect(await server.ended(job)).toMatchObject({ failedReason: 'the job was already started' });
    expect(worker.polled).toEqual([]);
  });

  it('does not start a job that stalled in a crashed worker', async () => {
    const redis = await redisForTest();
    const server = await openServer(redis);
    const watch = {
      lockDuration: 300,
      stalledInterval: 200,
      maxStalledCount: 0,
      skipLockRenewal: true,
    };
    const bullWorker = new Worker(POLLS_QUEUE, null, { connection: { url: redis.url }, ...watch });
    bullWorker.on('error', () => undefined);
    onTestFinished(() => bullWorker.close());
    const job = await server.addJob();
    await bullWorker.getNextJob('token');
    await bullWorker.startStalledCheckTimer();
    const worker = openWorker(redis);
    expect(await server.ended(job)).toMatchObject({
      failedReason: 'job stalled more than allowable limit',
    });
    expect(worker.polled).toEqual([]);
  });

  it('registers, reports its state, and unregisters', async () => {
    const redis = await redisForTest();
    const server = await openServer(redis);
    const { sendPoll, started, respond } = holding();
    const worker = openWorker(redis, { sendPoll, name: 'w-1' });
    const announced = async () =>
      JSON.parse((await server.redisClient.get('bull:dawatch-workers:names:w-1')) ?? 'null');
    await server.addJob({ submission_ids: ['a', 'b', 'c'] });
    await started;
    const seen = { name: 'w-1', version: '0.0.0-test', in_flight: 3, concurrency: 16 };
    await vi.waitFor(
      async () => expect(await announced()).toEqual({ format: 4, worker: seen }),
      5_000,
    );
    respond();
    await worker.close();
    expect(await announced()).toBeNull();
    expect(await server.redisClient.smembers('bull:dawatch-workers:names')).toEqual([]);
  });

  it('completes its requests in flight when it is stopped, and starts no more', async () => {
    const redis = await redisForTest();
    const server = await openServer(redis);
    const { sendPoll, started, respond } = holding();
    const first = openWorker(redis, { sendPoll });
    const current = await server.addJob();
    await started;
    const closing = first.close(10_000);
    const next = await server.addJob({ submission_ids: ['b'] });
    respond();
    await closing;
    expect((await server.ended(current)).finishedOn).toBeDefined();
    const second = openWorker(redis);
    // The stopping worker may have received the job already; then it returns the job without polls.
    const { not_polled } = (await server.ended(next)).returnvalue;
    expect(first.polled).toEqual(['a']);
    expect(second.polled).toEqual(not_polled === 'drained' ? [] : ['b']);
  });

  it('waits for a Redis that is not running yet, and reconnects after an outage', async () => {
    const redis = await redisForTest({ keeps: true });
    await redis.kill();
    const worker = openWorker(redis);
    await vi.waitFor(() => expect(worker.events).toMatchObject([{ kind: 'disconnected' }]), 5_000);
    await redis.restart();
    const server = await openServer(redis);
    await server.ended(await server.addJob());
    await redis.restart();
    const later = await openServer(redis);
    await later.ended(await later.addJob({ submission_ids: ['b'] }));
    expect(worker.polled).toEqual(['a', 'b']);
  });

  it('reports once that Redis denies it a command', async () => {
    const denied = async (command: string) => {
      const redis = await redisForTest();
      const server = await openServer(redis);
      await server.addJob();
      await server.redisClient.acl('SETUSER', 'default', `-${command}`);
      const worker = openWorker(redis);
      const detail = expect.stringMatching(/permission|ACL failure|can't run this command/);
      await vi.waitFor(
        () => expect(worker.events, command).toContainEqual({ kind: 'disconnected', detail }),
        10_000,
      );
      return worker;
    };
    const workers = await Promise.all(['bzpopmin', 'xadd'].map(denied));
    await sleep(2_500);
    for (const { events } of workers)
      expect(events.filter(({ kind }) => kind === 'disconnected')).toHaveLength(1);
  });
});
