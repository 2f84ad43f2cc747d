import { describe, expect, test } from 'vitest';
import { sleep } from '../../support/processes/killable-server.ts';
import { openFakeWorker, openQueue, openRedisClient } from '../../support/redis/bullmq-rig.ts';
import { isRedisMissing, redisForTest } from '../../support/redis/redis-server.ts';
import { prepareRedisWorld, untilLogged } from '../support/redis-world.ts';

const SUBMISSIONS = 'dawatch-submissions';
const POLLS = 'dawatch-polls-3';
const EVENTS = 'dawatch-events';
/** Twice the timeout of a request, and 10 s. */
const LEASE_MS = 12_000;

describe.skipIf(isRedisMissing())('workers and jobs', () => {
  test('a worker, and then the server, is suspended until its locks and leases expire, and continues', async () => {
    const redis = await redisForTest();
    const world = await prepareRedisWorld('lost locks', { redisUrl: redis.url });
    await world.start();
    await untilLogged(world, 'worker.joined', 2);
    await world.through(async () => {
      for (const target of [world.workers[0], world.server]) {
        target?.pause();
        await sleep(LEASE_MS + 2_000);
        target?.resume();
        await sleep(500);
      }
    });
    await world.expectSurvived();
  });

  test('duplicate jobs are processed once', async () => {
    const redis = await redisForTest();
    const world = await prepareRedisWorld('duplicate jobs', { redisUrl: redis.url });
    await world.start();
    await untilLogged(world, 'worker.joined', 2);
    const [submissions, polls] = [openQueue(redis, SUBMISSIONS), openQueue(redis, POLLS)];
    await world.through(async () => {
      const ids = world.submit(20);
      for (let count = 0; count < 20; count++) {
        await submissions.add('track', { submission_ids: ids }, { jobId: `twice-${count % 5}` });
        const [poll] = await polls.getJobs(['active', 'waiting', 'completed'], 0, 0);
        if (poll) await polls.add(poll.name, poll.data, { jobId: `copy-${count}` });
        await sleep(100);
      }
      for (const id of ids) world.expected.set(id, 'finalized');
    });
    await world.expectSurvived();
  });

  test('hostile jobs in each queue do no harm', async () => {
    const redis = await redisForTest();
    const world = await prepareRedisWorld('hostile jobs', { redisUrl: redis.url });
    await world.start();
    await untilLogged(world, 'worker.joined', 2);
    const redisClient = openRedisClient(redis);
    await world.through(async () => {
      for (const name of [SUBMISSIONS, POLLS, EVENTS]) {
        const queue = openQueue(redis, name);
        for (const data of HOSTILE) await queue.add('\u001b[31m\n', data);
        // Entries written without BullMQ: no JSON, no fields, and an id without a job.
        await redisClient.hset(`bull:${name}:broken`, {
          name: 'x',
          data: '{',
          opts: '{',
          timestamp: 'soon',
        });
        await redisClient.hset(`bull:${name}:empty`, { nothing: '1' });
        for (const id of ['broken', 'empty', 'missing'])
          await redisClient.lpush(`bull:${name}:wait`, id);
        await queue.add('wakes them', {});
      }
      await sleep(3_000);
    });
    const refused = await openQueue(redis, SUBMISSIONS).getFailed();
    expect(refused.length).toBeGreaterThan(HOSTILE.length - 1);
    await world.expectSurvived();
  });

  test('a worker of another version returns results in its own format', async () => {
    const redis = await redisForTest();
    const world = await prepareRedisWorld('another version', { redisUrl: redis.url, workers: 1 });
    await world.start();
    let count = 0;
    await openFakeWorker(redis, async (job) => {
      const kind = count++ % MALFORMED_RESULTS.length;
      if (kind === 0) throw new Error('this version knows no such job\n\u001b[31m');
      await job.updateProgress(MALFORMED_RESULTS[kind] as object);
      return MALFORMED_RESULTS[kind];
    });
    await untilLogged(world, 'worker.joined', 2);
    await world.through(() => sleep(5_000));
    expect(count).toBeGreaterThan(0);
    await world.expectSurvived();
  });
});

const HOSTILE: unknown[] = [
  null,
  '',
  0,
  [],
  {},
  { submission_ids: [] },
  { submission_ids: null, submission_id: { $ne: 1 } },
  { submission_id: 'x'.repeat(1_000_000) },
  { submission_ids: Array.from({ length: 10_001 }, (_, index) => `many-${index}`) },
  JSON.parse(
    '{"__proto__": {"submission_id": "polluted"}, "constructor": {"prototype": {"x": 1}}}',
  ),
  { submission_id: 'a\r\nb', metadata: { a: 1 }, upstream: 'nowhere' },
  {
    upstream: 'default',
    submission_ids: ['stolen'],
    fencing_token: 'x',
    expires_at: 9e15,
    timeout_ms: 1,
  },
  {
    upstream: 'default',
    submission_ids: ['stolen'],
    fencing_token: 'x',
    expires_at: -1,
    timeout_ms: 9e15,
    more: 1,
  },
];

const MALFORMED_RESULTS: unknown[] = [
  null,
  { answers: 'none' },
  [{ submission_id: 'never polled' }],
  {
    kind: 'answered',
    observations: [{ submissionId: 'never polled', verdict: { kind: 'finalized' } }],
  },
  'done',
];
