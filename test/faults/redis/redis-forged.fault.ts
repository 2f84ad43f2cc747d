import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { POLLS_QUEUE, type PollJob } from '../../../src/redis/messages.ts';
import { sleep } from '../../support/processes/killable-server.ts';
import { openFakeWorker, openQueue, openRedisClient } from '../../support/redis/bullmq-rig.ts';
import { isRedisMissing, redisForTest } from '../../support/redis/redis-server.ts';
import { prepareRedisWorld, untilLogged } from '../support/redis-world.ts';

const SECRET = 'a-secret-of-server-and-workers-0123456789';
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

test.skipIf(isRedisMissing())(
  'a writer to Redis without the secret cannot finalize a submission, have an id polled, or stop polls',
  async () => {
    const redis = await redisForTest();
    const world = await prepareRedisWorld('forged', {
      redisUrl: redis.url,
      redis: { secret: SECRET },
    });
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
  },
);
