import type { Job } from 'bullmq';
import { describe, expect, it, vi } from 'vitest';
import { POLLS_QUEUE, type PollJob } from '../../src/redis/messages.ts';
import type { Observation } from '../../src/submissions/classify.ts';
import type { PollEngine } from '../../src/submissions/ports.ts';
import { describeEngine } from '../polling/engine-conformance.ts';
import {
  openEngine,
  openFakeWorker,
  openQueue,
  openRedisClient,
  openWorker,
  PENDING,
} from '../support/redis/bullmq-rig.ts';
import { isRedisMissing, redisForTest } from '../support/redis/redis-server.ts';
import { openClient } from '../support/servers/upstream-server.ts';

/**
 * The poll of an engine that must not poll by itself: every observation has to come from a worker.
 */
const neverPoll = async () => Promise.reject(new Error('polled by this process'));
const polledOf = (submission_id: string, error = 'x') => ({
  submission_id,
  duration_ms: 1,
  answer: { kind: 'rejected', error },
});

async function polled(engine: PollEngine, submissionIds: string[]): Promise<Observation[]> {
  const observations: Observation[] = [];
  await engine.poll({ upstream: 'default', submissionIds }, (observation) =>
    observations.push(observation),
  );
  return observations;
}

describe.skipIf(isRedisMissing())('with Redis', () => {
  describeEngine('the BullMQ engine with two workers', async ({ url, apiKey, timeoutMs }) => {
    const client = openClient(url, { apiKey, timeoutMs, connections: 50 });
    const sendPoll = (_upstream: string, submissionId: string) => client.poll(submissionId);
    const redis = await redisForTest();
    const server = openEngine(redis, {
      local: neverPoll,
      timeoutMs,
      leaseMs: timeoutMs * 2 + 10_000,
    });
    openWorker(redis, { sendPoll, timeoutMs });
    openWorker(redis, { sendPoll, timeoutMs });
    await server.sees(2);
    return server.engine;
  });

  it('distributes a batch among the workers, in jobs of at most fifty ids', async () => {
    const redis = await redisForTest();
    const server = openEngine(redis, { local: neverPoll });
    const sizes: number[] = [];
    const held = Promise.withResolvers<void>();
    const work = async ({ data }: Job<PollJob>) => {
      sizes.push(data.submission_ids.length);
      await held.promise;
      return { polled: data.submission_ids.map((id) => polledOf(id)) };
    };
    await openFakeWorker(redis, work, 'one');
    await openFakeWorker(redis, work, 'two');
    await server.sees(2);
    const ids = (count: number) => Array.from({ length: count }, (_, index) => `s${index}`);
    const small = polled(server.engine, ids(5));
    await expect.poll(() => sizes.toSorted()).toEqual([2, 3]);
    const large = polled(server.engine, ids(300));
    await expect.poll(() => sizes.slice(2)).toEqual([50, 50, 50, 50, 50, 50]);
    held.resolve();
    expect(await small).toHaveLength(5);
    expect(await large).toHaveLength(300);
  });

  it('without a worker this process polls', async () => {
    const redis = await redisForTest();
    const server = openEngine(redis);
    await server.isUp();
    expect(await polled(server.engine, ['a', 'b'])).toMatchObject([
      { kind: 'pending' },
      { kind: 'pending' },
    ]);
    expect(await openQueue(redis).getJobCounts()).toMatchObject({ waiting: 0, completed: 0 });
  });

  it('an observation names the worker that polled', async () => {
    const redis = await redisForTest();
    const server = openEngine(redis, { local: neverPoll });
    openWorker(redis);
    await server.sees(1);
    expect(await polled(server.engine, ['a'])).toMatchObject([
      { kind: 'pending', worker: expect.stringMatching(/^worker-/) },
    ]);
  });

  it('submissions that a worker returned without polling are polled by this process', async () => {
    const redis = await redisForTest();
    const server = openEngine(redis);
    const worker = openWorker(redis, { upstreams: ['another'] });
    await server.sees(1);
    expect(await polled(server.engine, ['a'])).toMatchObject([
      { submissionId: 'a', kind: 'pending' },
    ]);
    expect(worker.polled).toEqual([]);
    expect(server.events).toContainEqual({
      kind: 'returned',
      reason: 'upstream',
      upstream: 'default',
      submissions: 1,
    });
  });

  it('a failed job, such as a stalled one, occupies its request budget until the lease expires', async () => {
    const redis = await redisForTest();
    const server = openEngine(redis, { local: neverPoll });
    await openFakeWorker(redis, async () =>
      Promise.reject(new Error('job stalled more than allowable limit')),
    );
    await server.sees(1);
    expect(await polled(server.engine, ['a'])).toEqual([]);
  });

  it('receives responses in batches, which a slow request does not delay', async () => {
    const redis = await redisForTest();
    const server = openEngine(redis, { local: neverPoll });
    const held = Promise.withResolvers<void>();
    openWorker(redis, {
      sendPoll: async (_upstream, id) => {
        if (id === 's49') await held.promise;
        return { ...PENDING, envelope: PENDING.envelope.padEnd(60_000) };
      },
    });
    await server.sees(1);
    const submissionIds = Array.from({ length: 50 }, (_, index) => `s${index}`);
    const seen: string[] = [];
    const ended = server.engine.poll({ upstream: 'default', submissionIds }, (observation) =>
      seen.push(observation.submissionId),
    );
    const others = submissionIds.slice(0, 49).toSorted();
    await vi.waitFor(() => expect(seen.toSorted()).toEqual(others), 5_000);
    held.resolve();
    await ended;
    expect(seen).toHaveLength(50);
    const entries = await server.link.redis.xrange(`bull:${POLLS_QUEUE}:events`, '-', '+');
    const batches = entries.filter(([, fields]) => fields.includes('progress'));
    expect(batches.length).toBeLessThan(25);
  });

  it('a result after the lease is dropped, and the ids can be polled again', async () => {
    const redis = await redisForTest();
    const server = openEngine(redis, { local: neverPoll, leaseMs: 2_000, timeoutMs: 100 });
    const late = Promise.withResolvers<void>();
    let responseCount = 0;
    await openFakeWorker(redis, async ({ data }: Job<PollJob>) => {
      responseCount += 1;
      if (responseCount === 1) await late.promise;
      return {
        polled: [polledOf(data.submission_ids[0] ?? '', responseCount === 1 ? 'late' : 'in time')],
      };
    });
    await server.sees(1);
    const first: Observation[] = [];
    const polling = server.engine.poll({ upstream: 'default', submissionIds: ['a'] }, (o) =>
      first.push(o),
    );
    await expect.poll(() => responseCount).toBe(1);
    // The results of other jobs keep the worker registered as working.
    expect(await polled(server.engine, ['b'])).toHaveLength(1);
    await polling;
    late.resolve();
    expect(await polled(server.engine, ['a'])).toMatchObject([{ error: 'in time' }]);
    expect(first).toEqual([]);
  });

  it('polls by itself if registered workers return no results', async () => {
    const redis = await redisForTest();
    const server = openEngine(redis, { leaseMs: 300, timeoutMs: 100 });
    const worker = openWorker(redis, { timeoutMs: 100 });
    await server.sees(1);
    await openQueue(redis).pause();
    expect(await polled(server.engine, ['a'])).toEqual([]);
    expect(await polled(server.engine, ['a'])).toMatchObject([{ kind: 'pending' }]);
    expect(worker.polled).toEqual([]);
  });

  it('names the reason if Redis denies a command that adds jobs', async () => {
    const redis = await redisForTest();
    const server = openEngine(redis, { leaseMs: 600, timeoutMs: 100 });
    openWorker(redis, { timeoutMs: 100 });
    await server.sees(1);
    await openRedisClient(redis).acl('SETUSER', 'default', '-hmset');
    expect(await polled(server.engine, ['a'])).toEqual([]);
    expect(server.events).toContainEqual({
      kind: 'job_failed',
      upstream: 'default',
      reason: expect.stringMatching(/did not confirm the job: .*(ACL failure|can't run)/),
    });
    expect(await polled(server.engine, ['a'])).toMatchObject([{ kind: 'pending' }]);
  });

  it('jobs contain no secret, and Redis keeps a limited number of completed jobs', async () => {
    const redis = await redisForTest();
    const server = openEngine(redis, { local: neverPoll });
    const jobs: Job[] = [];
    await openFakeWorker(redis, async (job) => {
      jobs.push(job);
      return { polled: [polledOf('a')] };
    });
    await server.sees(1);
    await polled(server.engine, ['a']);
    expect(Object.keys(jobs[0]?.data).sort()).toEqual([
      'expires_at',
      'fencing_token',
      'submission_ids',
      'timeout_ms',
      'upstream',
    ]);
    expect(jobs[0]?.opts).toMatchObject({
      removeOnComplete: { age: 600, count: 100 },
      removeOnFail: { age: 86_400, count: 1_000 },
    });
    // BullMQ reserves colons, and treats an id that looks like an integer as its own.
    expect(jobs[0]?.id).toMatch(/^(?!\d+$)[\w-]+$/);
  });
});
