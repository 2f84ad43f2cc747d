import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { POLLS_QUEUE, type PollJob } from '../../../src/redis/messages.ts';
import { sleep } from '../../support/processes/killable-server.ts';
import { openFakeWorker, openQueue, openRedisClient } from '../../support/redis/bullmq-rig.ts';
import { isRedisMissing, redisForTest } from '../../support/redis/redis-server.ts';
import { prepareRedisWorld, untilLogged } from '../support/redis-world.ts';

const SECRET = 'a-secret-of-server-and-workers-0123456789';
const OTHER = 'another-secret-that-nobody-shares-0123456';
const FORGED = '0xf0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0';

/** Returns a result that finalizes every id of a job. */
function forge(data: PollJob) {
  const body = JSON.stringify({
    state: 'Finalized',
    error: null,
    data: { block_hash: FORGED, block_number: 1 },
  });
  const response = { kind: 'response', httpStatus: 200, retryAfter: null, date: null, body };
  return {
    polled: data.submission_ids.map((submission_id) => ({
      submission_id,
      duration_ms: 1,
      response,
    })),
  };
}

describe.skipIf(isRedisMissing())('with a secret', () => {
  test('a writer to Redis cannot finalize a submission, have an id polled, or stop polls', async () => {
    const redis = await redisForTest();
    const world = await prepareRedisWorld('forged', { redisUrl: redis.url, redisSecret: SECRET });
    await world.start();
    await untilLogged(world, 'worker.joined', 2);
    const redisClient = openRedisClient(redis);
    const polls = openQueue(redis);
    // A worker that processes jobs as well, and returns results without the secret.
    const forger = await openFakeWorker(redis, async ({ data }) => forge(data));
    await world.through(async () => {
      for (let count = 0; count < 40; count++) {
        for (const { id, data } of await polls.getJobs(['active', 'waiting'])) {
          const text = JSON.stringify(forge(data));
          for (const fields of [
            ['event', 'progress', 'jobId', id ?? '', 'data', text],
            ['event', 'completed', 'jobId', id ?? '', 'returnvalue', text],
          ])
            await redisClient.xadd(`bull:${POLLS_QUEUE}:events`, '*', ...fields);
          await polls.add(
            'poll',
            { ...data, submission_ids: ['stolen'] },
            { jobId: `forged-${count}` },
          );
          await polls.add('poll', data, { jobId: `copied-${count}` });
        }
        await sleep(50);
      }
      await forger.close(true);
    });
    expect(world.server.logged('polls.rejected').length).toBeGreaterThan(0);
    expect(world.server.logged('worker.refused')).toMatchObject([{ worker: 'odd' }]);
    for (const worker of world.workers) expect(worker.lines.join('\n')).not.toContain('stolen');
    await world.expectSurvived();
    expect(readFileSync(world.server.file).includes(FORGED)).toBe(false);
  });

  test('workers with another secret process no jobs, both sides report it, and the server polls', async () => {
    const redis = await redisForTest();
    const options = { redisUrl: redis.url, redisSecret: SECRET, workerSecret: OTHER };
    const world = await prepareRedisWorld('other secrets', options);
    await world.start();
    await untilLogged(world, 'worker.refused', 2);
    await world.through(() => sleep(2_000));
    for (const worker of world.workers)
      expect(worker.lines.join('\n')).toContain('worker.secret_mismatch');
    expect(world.server.logged('polls.job_failed')).toEqual([]);
    await world.expectSurvived();
  });
});

describe.skipIf(isRedisMissing())('without a secret', () => {
  test('a forged result is classified as a response of the upstream: none without a block hash finalizes', async () => {
    const redis = await redisForTest();
    const world = await prepareRedisWorld('forged nonsense', { redisUrl: redis.url, workers: 1 });
    await world.start();
    const bodies = [
      '{"state":"Finalized","error":null,"data":{}}',
      'Finalized',
      `{"state":"Finalized","data":${'['.repeat(5_000)}`,
    ];
    let count = 0;
    await openFakeWorker(redis, async ({ data }) => {
      const result = forge(data);
      for (const { response } of result.polled)
        response.body = bodies[count++ % bodies.length] ?? '';
      return result;
    });
    await untilLogged(world, 'worker.joined', 2);
    await world.through(() => sleep(5_000));
    expect(count).toBeGreaterThan(0);
    await world.expectSurvived();
  });
});
