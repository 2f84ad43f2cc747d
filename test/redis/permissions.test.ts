import { describe, expect, test, vi } from 'vitest';
import { neededCommands, verifyPermissions } from '../../src/redis/requirements.ts';
import { createUsers, documentedRules } from '../support/redis/acl.ts';
import { openEngine, openRedisClient, openWorker } from '../support/redis/bullmq-rig.ts';
import { isRedisMissing, redisForTest } from '../support/redis/redis-server.ts';

async function redisWithUsers() {
  const redis = await redisForTest();
  const admin = openRedisClient(redis);
  const addresses = await createUsers(admin, redis.url);
  return { admin, addresses };
}

describe.each(['server', 'worker'] as const)('the documented user of a %s', (user) => {
  test('has exactly the commands that dawatch verifies', () => {
    const commands = documentedRules(user).filter((rule) => rule.startsWith('+'));
    expect(commands).toEqual(neededCommands(user).map((name) => `+${name}`));
  });

  test.skipIf(isRedisMissing())(
    'lacks nothing; one command or key pattern less is reported by its name',
    async () => {
      const { admin, addresses } = await redisWithUsers();
      const name = `dawatch-${user}`;
      const own = openRedisClient({ url: addresses[user] });
      const verify = () => verifyPermissions(own, 'bull', user);
      await expect(verify()).resolves.toBeUndefined();
      for (const command of neededCommands(user)) {
        await admin.call('ACL', 'SETUSER', name, `-${command}`);
        await expect(verify(), command).rejects.toThrow(
          `NOPERM the ACL user lacks permissions: +${command}`,
        );
        await admin.call('ACL', 'SETUSER', name, `+${command}`);
      }
      await admin.call('ACL', 'SETUSER', name, 'resetkeys', '~bull:dawatch-polls-3:*');
      await expect(verify()).rejects.toThrow(
        /^NOPERM the ACL user lacks permissions: .*~bull:dawatch-workers:names/,
      );
    },
  );
});

describe.skipIf(isRedisMissing())('a permission that was forgotten', () => {
  test('keeps the server from using Redis, with the reason, until it is granted', async () => {
    const { admin, addresses } = await redisWithUsers();
    await admin.call('ACL', 'SETUSER', 'dawatch-server', '-xread', '-zadd');
    const server = openEngine({ url: addresses.server });
    const detail = 'NOPERM the ACL user lacks permissions: +xread +zadd';
    await vi.waitUntil(
      () => server.events.some((event) => 'detail' in event && event.detail === detail),
      10_000,
    );
    expect(server.link.health).toMatchObject({ state: 'disconnected', reason: 'refused' });
    await admin.call('ACL', 'SETUSER', 'dawatch-server', '+xread', '+zadd');
    await server.isUp();
  });

  test('keeps a worker from registering, with the reason, until it is granted', async () => {
    const { admin, addresses } = await redisWithUsers();
    await admin.call('ACL', 'SETUSER', 'dawatch-worker', '-rpoplpush');
    const server = openEngine({ url: addresses.server });
    const worker = openWorker({ url: addresses.worker });
    await vi.waitUntil(() => worker.events.length > 0, 10_000);
    expect(worker.events).toEqual([
      { kind: 'disconnected', detail: 'NOPERM the ACL user lacks permissions: +rpoplpush' },
    ]);
    await admin.call('ACL', 'SETUSER', 'dawatch-worker', '+rpoplpush');
    await server.sees(1);
  });
});
