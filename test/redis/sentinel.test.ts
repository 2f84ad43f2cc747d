import { describe, expect, test, vi } from 'vitest';
import { openEngine } from '../support/redis/bullmq-rig.ts';
import { isRedisMissing } from '../support/redis/redis-server.ts';
import { sentinelsForTest } from '../support/redis/sentinels.ts';

describe.skipIf(isRedisMissing())('a primary behind Sentinels', () => {
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
