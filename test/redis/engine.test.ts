import type { Job } from 'bullmq';
import { describe, expect, it } from 'vitest';
import { POLLS_QUEUE } from '../../src/redis/connections.ts';
import type { PollJob } from '../../src/redis/polls-queue.ts';
import { describeEngine } from '../polling/engine-conformance.ts';
import {
  LEASE_MS,
  openEngine,
  openFakeWorker,
  openQueue,
  openRedisClient,
  openWorker,
} from '../support/redis/bullmq-rig.ts';
import { isRedisMissing, redisForTest } from '../support/redis/redis-server.ts';
import { openClient } from '../support/servers/upstream-server.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

const rejected = (submissionId: string, error = 'x') => ({
  submissionId,
  durationMs: 1,
  kind: 'rejected',
  error,
});

describe.skipIf(isRedisMissing())('with Redis', () => {
  describeEngine('the BullMQ engine with two workers', async ({ url, apiKey, timeoutMs }) => {
    const client = openClient(url, { apiKey, timeoutMs, connections: 50 });
    const redis = await redisForTest();
    const server = openEngine(redis);
    for (let worker = 0; worker < 2; worker++)
      openWorker(redis, { sendPoll: (_upstream, id) => client.poll(id), timeoutMs });
    await server.sees(2);
    return {
      async poll(batch, report) {
        await server.engine.poll(batch, report);
        expect(server.polled, 'polled by the server').toEqual([]);
      },
    };
  });

  it('distributes a batch among the workers, in jobs of at most fifty ids', async () => {
    const redis = await redisForTest();
    const server = openEngine(redis);
    const sizes: number[] = [];
    const held = Promise.withResolvers<void>();
    const work = async ({ data }: Job<PollJob>) => {
      sizes.push(data.submission_ids.length);
      await held.promise;
      return { worker: 'fake', observations: data.submission_ids.map((id) => rejected(id)) };
    };
    openFakeWorker(redis, work, 'one');
    openFakeWorker(redis, work, 'two');
    await server.sees(2);
    const ids = (count: number) => Array.from({ length: count }, (_, index) => `s${index}`);
    const small = server.poll(...ids(5));
    await expect.poll(() => sizes.toSorted()).toEqual([2, 3]);
    const large = server.poll(...ids(300));
    await expect.poll(() => sizes.slice(2)).toEqual([50, 50, 50, 50, 50, 50]);
    held.resolve();
    expect(await small).toHaveLength(5);
    expect(await large).toHaveLength(300);
    expect(server.polled).toEqual([]);
  });

  it('without a worker this process polls', async () => {
    const redis = await redisForTest();
    const server = openEngine(redis);
    await server.sees(0);
    expect(await server.poll('a', 'b')).toMatchObject([{ kind: 'pending' }, { kind: 'pending' }]);
    expect(await openQueue(redis).getJobCounts()).toMatchObject({ waiting: 0, completed: 0 });
  });

  it('polls itself if workers refuse its jobs, and logs why', async () => {
    const redis = await redisForTest();
    const server = openEngine(redis);
    const worker = openWorker(redis, { upstreams: ['another'], name: 'w-1' });
    await server.sees(1);
    expect(await server.poll('a')).toEqual([]);
    expect(await server.poll('a')).toMatchObject([{ kind: 'pending' }]);
    expect(worker.polled).toEqual([]);
    expect(server.logged).toContainEqual(
      expect.objectContaining({
        msg: 'polls.job_failed',
        reason: 'w-1: this worker has no upstream default',
      }),
    );
  });

  it.each<[string, unknown]>([
    ['no object', null],
    ['an observation without its fields', { worker: 'w', observations: [{ submissionId: 'a' }] }],
    ['an id of another job', { worker: 'w', observations: [rejected('a'), rejected('b')] }],
  ])('nothing of a result with %s is accepted', async (_what, result) => {
    const redis = await redisForTest();
    const server = openEngine(redis);
    openFakeWorker(redis, async () => result);
    await server.sees(1);
    expect(await server.poll('a')).toEqual([]);
    expect(server.logged.map(({ msg }) => msg)).toContain('polls.job_failed');
  });

  it('accepts each id of a result once', async () => {
    const redis = await redisForTest();
    const server = openEngine(redis);
    const observations = [rejected('a', 'first'), rejected('a', 'second')];
    openFakeWorker(redis, async () => ({ worker: 'w', observations }));
    await server.sees(1);
    expect(await server.poll('a')).toMatchObject([{ error: 'first' }]);
  });

  it('a result after the lease is ignored, and the ids can be polled again', async () => {
    const redis = await redisForTest();
    const clock = new HeldClock(LEASE_MS / 2);
    const server = openEngine(redis, { clock });
    const taken = Promise.withResolvers<void>();
    const late = Promise.withResolvers<void>();
    const errors = ['late'];
    openFakeWorker(redis, async ({ data }: Job<PollJob>) => {
      const error = errors.pop() ?? 'in time';
      taken.resolve();
      if (error === 'late') await late.promise;
      return { worker: 'w', observations: data.submission_ids.map((id) => rejected(id, error)) };
    });
    await server.sees(1);
    const polled = server.poll('a');
    await taken.promise;
    clock.fireAll();
    expect(await polled).toEqual([]);
    late.resolve();
    expect(await server.pollByWorker('a')).toMatchObject([{ error: 'in time' }]);
  });

  it('after a poll that no worker completes, polls itself until a worker has completed a test', async () => {
    const redis = await redisForTest();
    const clock = new HeldClock(LEASE_MS / 2);
    const server = openEngine(redis, { clock });
    const held = Promise.withResolvers<void>();
    const takenIds: string[][] = [];
    openFakeWorker(redis, async ({ data }: Job<PollJob>) => {
      takenIds.push(data.submission_ids);
      await held.promise;
      return { worker: 'w', observations: data.submission_ids.map((id) => rejected(id)) };
    });
    await server.sees(1);
    const polled = server.poll('a');
    await expect.poll(() => takenIds).toHaveLength(1);
    clock.fireAll();
    expect(await polled).toEqual([]);
    expect(await server.poll('b', 'c')).toHaveLength(2);
    expect(server.polled).toEqual(['b', 'c']);
    held.resolve();
    expect(await server.pollByWorker('d')).toMatchObject([{ worker: 'w' }]);
    // The test polls nothing.
    expect(takenIds.slice(0, 2)).toEqual([['a'], []]);
  });

  it('polls itself while the queue is paused', async () => {
    const redis = await redisForTest();
    const server = openEngine(redis);
    const worker = openWorker(redis);
    await server.sees(1);
    await openQueue(redis).pause();
    await server.sees(1, [POLLS_QUEUE]);
    expect(await server.poll('a')).toMatchObject([{ kind: 'pending' }]);
    await openQueue(redis).resume();
    await server.sees(1);
    expect(await server.poll('b')).toHaveLength(1);
    expect([server.polled, worker.polled]).toEqual([['a'], ['b']]);
  });

  it('names the reason if Redis denies a command that adds jobs', async () => {
    const redis = await redisForTest();
    const clock = new HeldClock(LEASE_MS / 2);
    const server = openEngine(redis, { clock });
    openWorker(redis);
    await server.sees(1);
    const redisClient = openRedisClient(redis);
    await redisClient.acl('SETUSER', 'default', '-hmset');
    const denied = server.poll('a');
    await expect.poll(() => redisClient.acl('LOG')).not.toEqual([]);
    // The error of the denied command has arrived before the result of a later one.
    await server.queue.count();
    clock.fireAll();
    expect(await denied).toEqual([]);
    expect(server.logged).toContainEqual(
      expect.objectContaining({
        msg: 'polls.job_failed',
        reason: expect.stringMatching(/did not confirm the job: .*(ACL failure|can't run)/),
      }),
    );
    expect(await server.poll('a')).toMatchObject([{ kind: 'pending' }]);
  });

  it('jobs contain no secret, and Redis keeps a limited number of completed jobs', async () => {
    const redis = await redisForTest();
    const server = openEngine(redis);
    const jobs: Job[] = [];
    openFakeWorker(redis, async (job) => {
      jobs.push(job);
      return { worker: 'w', observations: [rejected('a')] };
    });
    await server.sees(1);
    await server.poll('a');
    expect(Object.keys(jobs[0]?.data).sort()).toEqual([
      'expires_at',
      'run_id',
      'submission_ids',
      'upstream',
    ]);
    expect(jobs[0]?.opts).toMatchObject({
      removeOnComplete: { age: 600, count: 100 },
      removeOnFail: { age: 86_400, count: 1_000 },
    });
  });
});
