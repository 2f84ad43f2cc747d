import { expect, test } from 'vitest';
import { disconnect, openRedis } from '../../src/redis/connections.ts';
import { createAuthority, tlsOptions } from '../support/redis/certificates.ts';
import { isRedisMissing, redisForTest } from '../support/redis/redis-server.ts';
import { freePort } from '../support/servers/free-port.ts';

test.skipIf(isRedisMissing())(
  'a Redis whose certificate no trusted authority has signed is refused',
  async () => {
    const authority = createAuthority();
    const port = await freePort();
    await redisForTest({ settings: tlsOptions(port, authority.ca, authority.issue('redis')) });
    const redis = openRedis({ url: `rediss://127.0.0.1:${port}` });
    const first = new Promise<string>((resolve) => {
      redis.once('ready', () => resolve('ready'));
      redis.once('error', (error) => resolve(error.message));
    });
    expect(await first.finally(() => disconnect(redis))).toMatch(/certificate/);
  },
);
