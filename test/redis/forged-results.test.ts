import type { Job } from 'bullmq';
import { describe, expect, it, vi } from 'vitest';
import type { Clock } from '../../src/lib/clock.ts';
import { systemClock } from '../../src/lib/system-clock.ts';
import {
  MessageSigner,
  type Polled,
  type PollJob,
  type PollResult,
  signedResult,
} from '../../src/redis/messages.ts';
import type { Observation } from '../../src/submissions/classify.ts';
import type { PollEngine } from '../../src/submissions/ports.ts';
import {
  openEngine,
  openFakeWorker,
  openRedisClient,
  openWorker,
  PENDING,
} from '../support/redis/bullmq-rig.ts';
import { isRedisMissing, redisForTest } from '../support/redis/redis-server.ts';

const SECRET = 'a-secret-of-server-and-workers-0123456789';
const OTHER = 'another-secret-that-nobody-shares-0123456';

/**
 * The poll of an engine that must not poll by itself: every observation has to come from a worker.
 */
const neverPoll = async () => Promise.reject(new Error('polled by this process'));
/** A lease that no machine is too slow for: a rejected result ends the poll before it. */
const LONG = { local: neverPoll, leaseMs: 60_000, timeoutMs: 100 };

const one = (submission_id = 'a', more: object = {}): Polled =>
  ({ submission_id, duration_ms: 1, answer: PENDING, ...more }) as Polled;
const response = (more: object) => ({ polled: [one('a', { answer: { ...PENDING, ...more } })] });

async function poll(engine: PollEngine, submissionIds: string[]): Promise<Observation[]> {
  const observations: Observation[] = [];
  await engine.poll({ upstream: 'default', submissionIds }, (observation) =>
    observations.push(observation),
  );
  return observations;
}

const sign = (
  secret: string,
  job: Pick<Job<PollJob>, 'id' | 'data'>,
  result: PollResult,
): PollResult => ({
  ...result,
  signature: new MessageSigner(secret).sign(
    'result',
    signedResult({ jobId: job.id ?? '', fencingToken: job.data.fencing_token }, result),
  ),
});

describe.skipIf(isRedisMissing())('a result in Redis that no worker would send', () => {
  it.each<[string, unknown, string]>([
    ['another shape', { results: [] }, 'malformed'],
    ['an answer above every limit', response({ envelope: 'x'.repeat(3_000_000) }), 'malformed'],
    ['an id of another job', { polled: [one('a'), one('b')] }, 'foreign_id'],
  ])(
    '%s is rejected as a whole, reported, and its id can be polled again',
    async (_what, forged, reason) => {
      const redis = await redisForTest();
      const server = openEngine(redis, LONG);
      await openFakeWorker(redis, async () => forged);
      await server.sees(1);
      expect(await poll(server.engine, ['a'])).toEqual([]);
      expect(server.events).toContainEqual(
        expect.objectContaining({ kind: 'rejected', upstream: 'default', reason }),
      );
      expect(server.events).toContainEqual(
        expect.objectContaining({ kind: 'job_failed', upstream: 'default' }),
      );
    },
  );

  it('does not affect the results of a worker', async () => {
    const redis = await redisForTest();
    const server = openEngine(redis, { local: neverPoll });
    await openFakeWorker(redis, async (job) => {
      await job.updateProgress({ polled: [one('not of this job')] });
      await job.updateProgress(7);
      return { polled: [one('a')] };
    });
    await server.sees(1);
    expect(await poll(server.engine, ['a'])).toMatchObject([
      { submissionId: 'a', kind: 'pending' },
    ]);
    expect(server.events.filter(({ kind }) => kind === 'rejected')).toHaveLength(2);
  });
});

describe.skipIf(isRedisMissing())('with a secret', () => {
  it.each<[string, (job: Job<PollJob>, earlier: Job<PollJob>) => PollResult]>([
    ['that is not signed', () => ({ polled: [one()] })],
    ['of another job', (_job, earlier) => sign(SECRET, earlier, { polled: [one()] })],
  ])('a result %s is rejected', async (_what, forge) => {
    const redis = await redisForTest();
    const server = openEngine(redis, { ...LONG, secret: SECRET });
    let earlier: Job<PollJob> | undefined;
    const work = async (job: Job<PollJob>) => {
      earlier ??= job;
      return job === earlier ? sign(SECRET, job, { polled: [one('first')] }) : forge(job, earlier);
    };
    await openFakeWorker(redis, work, 'odd', SECRET);
    await server.sees(1);
    expect(await poll(server.engine, ['first'])).toHaveLength(1);
    expect(await poll(server.engine, ['a'])).toEqual([]);
    expect(server.events).toContainEqual(
      expect.objectContaining({ kind: 'rejected', reason: 'signature' }),
    );
  });

  it('a result replayed after the end of its job is dropped, and within a job each id counts once', async () => {
    const redis = await redisForTest();
    const server = openEngine(redis, { ...LONG, secret: SECRET });
    const kept: { job: Job<PollJob>; result: PollResult }[] = [];
    const work = async (job: Job<PollJob>) => {
      const result = sign(SECRET, job, { polled: [one()] });
      kept.push({ job, result });
      await job.updateProgress(result);
      return result;
    };
    await openFakeWorker(redis, work, 'odd', SECRET);
    await server.sees(1);
    expect(await poll(server.engine, ['a'])).toHaveLength(1);
    const [first] = kept;
    const replay = [
      'event',
      'completed',
      'jobId',
      first?.job.id ?? '',
      'returnvalue',
      JSON.stringify(first?.result),
    ];
    await openRedisClient(redis).xadd(`bull:${first?.job.queueName}:events`, '*', ...replay);
    expect(await poll(server.engine, ['a'])).toHaveLength(1);
    expect(server.events.filter(({ kind }) => kind === 'rejected')).toEqual([]);
  });

  it('a worker that starts before its server does not report the secret of the server before it', async () => {
    const redis = await redisForTest();
    const previous = openEngine(redis, { secret: OTHER });
    await previous.isUp();
    await previous.close();
    const worker = openWorker(redis, { secret: SECRET });
    await vi.waitFor(() => expect(worker.events).toEqual([{ kind: 'connected' }]), 5_000);
    const server = openEngine(redis, { local: neverPoll, secret: SECRET });
    await server.sees(1);
    expect(await poll(server.engine, ['a'])).toHaveLength(1);
    expect(worker.events).toEqual([{ kind: 'connected' }]);
  });

  it('a worker stops when its server changes the secret, and continues when the server restores it', async () => {
    const redis = await redisForTest();
    const first = openEngine(redis, { local: neverPoll, secret: SECRET });
    let aheadMs = 0;
    const clock: Clock = {
      now: () => systemClock.now() + aheadMs,
      after: (delayMs, run) => systemClock.after(delayMs, run),
    };
    const worker = openWorker(redis, { secret: SECRET, clock });
    await first.sees(1);
    await first.close();
    const second = openEngine(redis, { secret: OTHER });
    await vi.waitFor(() => {
      // A mismatch is reported when it has lasted for some seconds.
      aheadMs += 500;
      expect(worker.events.at(-1)?.kind).toBe('secret_mismatch');
    }, 10_000);
    await second.isUp();
    expect(await poll(second.engine, ['a'])).toHaveLength(1);
    await second.close();
    // Without a fencing token the worker cannot know the server's secret.
    await openRedisClient(redis).flushall();
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(worker.events.at(-1)?.kind).toBe('secret_mismatch');
    const third = openEngine(redis, { local: neverPoll, secret: SECRET });
    await third.sees(1);
    expect(await poll(third.engine, ['b'])).toHaveLength(1);
    expect(worker.polled).toEqual(['b']);
    await vi.waitFor(() => expect(worker.events.at(-1)?.kind).toBe('secret_matched'), 5_000);
  });
});
