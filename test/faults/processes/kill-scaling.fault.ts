import { describe, test } from 'vitest';
import { isRedisMissing } from '../../support/redis/redis-server.ts';
import { killScaling } from '../support/scaling-kills.ts';

describe.skipIf(isRedisMissing())('with Redis', () => {
  test('forty kills -9 of workers and server, three of Redis, and FLUSHALL, lose nothing that was acknowledged', () =>
    killScaling({ kills: 40, submissions: 6_000, redisKills: [6, 14, 30], flush: 22 }));
});
