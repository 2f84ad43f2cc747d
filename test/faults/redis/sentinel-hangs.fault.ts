import { test, vi } from 'vitest';
import { openEngine, openWorker } from '../../support/redis/bullmq-rig.ts';
import { isRedisMissing } from '../../support/redis/redis-server.ts';
import { sentinelsForTest } from '../../support/redis/sentinels.ts';

test.skipIf(isRedisMissing())(
  'a primary that hangs is left by server and worker for the one that Sentinels replace it with',
  async () => {
    const redis = await sentinelsForTest();
    const server = openEngine(redis.address);
    const worker = openWorker(redis.address);
    await server.sees(1);
    const former = await redis.primary();
    former.pause();
    await redis.replaced(former);
    await server.isUp();
    await server.sees(1);
    // The connection on which the worker waits for jobs is silent for up to 25 s before it is
    // replaced.
    const poll = () =>
      server.engine.poll({ upstream: 'default', submissionIds: ['a'] }, () => undefined);
    await vi.waitUntil(() => poll().then(() => worker.polled.includes('a')), {
      timeout: 90_000,
      interval: 500,
    });
  },
  120_000,
);
