import { describe, test } from 'vitest';
import { killScaling } from '../faults/support/scaling-kills.ts';
import { isRedisMissing } from '../support/redis/redis-server.ts';

// Many more: test/faults/processes/kill-scaling.fault.ts.
describe.skipIf(isRedisMissing())('with Redis', () => {
  test(
    'five kills -9 of workers and server, one of Redis, and FLUSHALL, lose nothing that was acknowledged',
    {
      timeout: 150_000,
    },
    () => killScaling({ kills: 5, submissions: 500, redisKills: [2], flush: 3 }),
  );
});
