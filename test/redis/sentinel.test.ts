import { describe, expect, test, vi } from 'vitest';
import { openEngine, openWorker } from '../support/redis/bullmq-rig.ts';
import { isRedisMissing } from '../support/redis/redis-server.ts';
import { sentinelsForTest } from '../support/redis/sentinels.ts';

describe.skipIf(isRedisMissing())('a primary behind Sentinels', () => {
  test('is found with the passwords of both, and its replacement is found after a failover', async () => {
    const redis = await sentinelsForTest({
      password: 'of-redis',
      sentinelPassword: 'of-sentinels',
    });
    const server = openEngine(redis.address);
    const worker = openWorker(redis.address);
    await server.sees(1);
    const former = await redis.primary();
    await former.kill();
    await server.isDisconnected();
    await redis.replaced(former);
    await server.isUp();
    await server.sees(1);
    const reported: string[] = [];
    await server.engine.poll({ upstream: 'default', submissionIds: ['a'] }, ({ submissionId }) =>
      reported.push(submissionId),
    );
    expect(reported).toEqual(['a']);
    expect(worker.polled).toEqual(['a']);
  });

  test('with another password of the Sentinels is reported as refused, without the password', async () => {
    const redis = await sentinelsForTest({ sentinelPassword: 'of-sentinels' });
    const server = openEngine({ ...redis.address, sentinel_password: 'a-wrong-one' });
    await vi.waitUntil(() => server.events.length > 0, 10_000);
    expect(server.events).toMatchObject([
      {
        kind: 'disconnected',
        reason: 'refused',
        detail: expect.stringMatching(/Last error: WRONGPASS/),
      },
    ]);
    expect(JSON.stringify(server.events)).not.toContain('a-wrong-one');
  });
});
